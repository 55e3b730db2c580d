// Whether the store is the one its nodes have seen, and that an operator takes it for what it is.

import { domainSettingsRow, readDomainAndAlert } from '#plane/core/domain-settings-row.ts'
import { continuityView, doubtView, storeApi } from '#wire/continuity/store-api.ts'
import { attributionOf, answer, serve, type Route } from '#plane/http/route.ts'
import { decideConfirmStore, doubtAlertKey, type Doubt } from '#domain/continuity/continuity.ts'
import type { Attribution } from '#domain/core/change.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const operatorStoreRoutes = (core: FlowCore): readonly Route[] =>
  serve(storeApi, {
    continuity: async () => answer(continuityView((await domainSettingsRow(core.store)).value.continuity)),
    confirm: async (call) => {
      const { reason } = call.body
      const done = await confirmStore(core, reason, attributionOf(call))
      return done.kind === 'refused' ? done : answer({ lineage: done.lineage, confirmed: doubtView(done.doubt) })
    },
  })

export type ConfirmedStore = { readonly kind: 'confirmed'; readonly doubt: Doubt; readonly lineage: number }

/** An operator has looked at a store that its nodes have seen further, and takes it for what it is. */
export const confirmStore = async (
  core: FlowCore,
  reason: string,
  by: Attribution,
): Promise<ConfirmedStore | Refusal> => {
  const done = await commitDecision(core, async () => {
    const read = await readDomainAndAlert(core, doubtAlertKey)
    return decideConfirmStore({ ...read, reason, by })
  })
  return done.kind === 'refused' ? done : { kind: 'confirmed', doubt: done.doubt, lineage: done.lineage }
}
