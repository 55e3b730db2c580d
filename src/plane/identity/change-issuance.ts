// An operator halts all issuance, or lets it go on. Effective everywhere once it is committed: whatever was decided before
// has read the row that is written here, and loses the race.

import type { Attribution } from '#domain/core/change.ts'
import { decideHalt, decideResume, haltAlertKey, type Issuance, type ResumeFacts } from '#domain/identity/issuance.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { sortableId } from '#platform/random.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Core } from '#plane/core/core.ts'

export type IssuanceDeps = CommitDeps &
  Pick<Core, 'clock' | 'random'> & {
    readonly store: Pick<Store, 'get' | 'commit'>
  }

export type IssuanceNow = { readonly kind: 'written'; readonly issuance: Issuance }

export const haltIssuance = async (
  deps: IssuanceDeps,
  wanted: { readonly reason: string; readonly renewals: boolean },
  by: Attribution,
): Promise<IssuanceNow | Refusal> => {
  const done = await commitDecision(deps, async () => decideHalt({ ...(await factsNow(deps, by)), ...wanted }))
  return done.kind === 'refused' ? done : { kind: 'written', issuance: done.issuance }
}

export const resumeIssuance = async (deps: IssuanceDeps, by: Attribution): Promise<IssuanceNow | Refusal> => {
  const done = await commitDecision(deps, async () => decideResume(await factsNow(deps, by)))
  return done.kind === 'refused' ? done : { kind: 'written', issuance: done.issuance }
}

const factsNow = async ({ store, clock, random }: IssuanceDeps, by: Attribution): Promise<ResumeFacts> => {
  const domain = await domainSettingsRow(store)
  const alert = await store.get('alert', haltAlertKey(domain.value))
  const nowMs = clock.nowMs()
  return { domain, alert, newAlertId: sortableId(nowMs, random), by, nowMs }
}
