// An operator has looked at a store that its nodes have seen further, and takes it for what it is.

import { decideConfirmStore, doubtAlertKey, type Doubt } from '#domain/continuity/continuity.ts'
import type { Attribution } from '#domain/core/decision.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { sortableId } from '#platform/random.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Core } from '#plane/core/core.ts'

export type ConfirmStoreDeps = CommitDeps &
  Pick<Core, 'clock' | 'random'> & {
    readonly store: Pick<Store, 'get' | 'commit'>
  }

export type ConfirmedStore = { readonly kind: 'confirmed'; readonly doubt: Doubt; readonly lineage: number }

export const confirmStore = async (
  deps: ConfirmStoreDeps,
  reason: string,
  by: Attribution,
): Promise<ConfirmedStore | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const domain = await domainSettingsRow(deps.store)
    const alert = await deps.store.get('alert', doubtAlertKey(domain.value))
    const nowMs = deps.clock.nowMs()
    return decideConfirmStore({ domain, alert, newAlertId: sortableId(nowMs, deps.random), reason, by, nowMs })
  })
  return done.kind === 'refused' ? done : { kind: 'confirmed', doubt: done.doubt, lineage: done.lineage }
}
