// Whether certificates are issued, for those who may stop it.

import { domainSettingsRow, readDomainAndAlert } from '#plane/core/domain-settings-row.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { issuanceView, issuanceApi } from '#wire/identity/issuance-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import { withStore, type FlowCore } from '#plane/core/core.ts'
import type { Attribution } from '#domain/core/change.ts'
import { decideHalt, decideResume, haltAlertKey, type Issuance } from '#domain/identity/issuance.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'

export const operatorIssuanceRoutes = (core: FlowCore, cutOffs: Pick<PendingCutOffs, 'run'>): readonly Route[] =>
  serve(issuanceApi, {
    show: async () => answer(issuanceView((await domainSettingsRow(core.store)).value.issuance)),
    halt: async (call) => {
      const { reason, renewals = false } = call.body
      const by = attributionOf(call)
      const done = await cutOffs.run({ kind: 'halt', reason, renewals, by }, (store) =>
        haltIssuance(withStore(core, store), { reason, renewals }, by),
      )
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
    resume: async (call) => {
      const done = await resumeIssuance(core, attributionOf(call))
      return done.kind === 'refused' ? done : answer(issuanceView(done.issuance))
    },
  })

// An operator halts all issuance, or resumes it. Effective everywhere once it is committed: an earlier decision has read the row
// that is written here, and loses the race.

export type IssuanceNow = { readonly kind: 'written'; readonly issuance: Issuance }

export const haltIssuance = async (
  core: FlowCore,
  wanted: { readonly reason: string; readonly renewals: boolean },
  by: Attribution,
): Promise<IssuanceNow | Refusal> => {
  const done = await commitDecision(core, async () =>
    decideHalt({ ...(await readDomainAndAlert(core, haltAlertKey)), ...wanted, by }),
  )
  return done.kind === 'refused' ? done : { kind: 'written', issuance: done.issuance }
}

export const resumeIssuance = async (core: FlowCore, by: Attribution): Promise<IssuanceNow | Refusal> => {
  const done = await commitDecision(core, async () =>
    decideResume({ ...(await readDomainAndAlert(core, haltAlertKey)), by }),
  )
  return done.kind === 'refused' ? done : { kind: 'written', issuance: done.issuance }
}
