// Whether the store is the one its nodes have seen, and that an operator takes it for what it is.

import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { continuityView, doubtView, storeApi } from '#wire/continuity/store-api.ts'
import { attributionOf, answer, serve, type Route } from '#plane/http/route.ts'
import { decideConfirmStore, doubtAlertKey, type Doubt } from '#domain/continuity/continuity.ts'
import type { Attribution } from '#domain/core/change.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import { sortableId, type Random } from '#platform/random.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'

export const operatorStoreRoutes = (deps: ConfirmStoreDeps): readonly Route[] =>
  serve(storeApi, {
    continuity: async () => answer(continuityView((await domainSettingsRow(deps.store)).value.continuity)),
    confirm: async (call) => {
      const { reason } = call.body
      const done = await confirmStore(deps, reason, attributionOf(call))
      return done.kind === 'refused' ? done : answer({ lineage: done.lineage, confirmed: doubtView(done.doubt) })
    },
  })

export type ConfirmStoreDeps = CommitDeps & {
  readonly store: Pick<Store, 'get' | 'commit'>
  readonly clock: Clock
  readonly random: Random
}

export type ConfirmedStore = { readonly kind: 'confirmed'; readonly doubt: Doubt; readonly lineage: number }

/** An operator has looked at a store that its nodes have seen further, and takes it for what it is. */
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
