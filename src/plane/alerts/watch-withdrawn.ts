// The alert about a withdrawn authority is over once no node lives by a certificate of it any more. That takes a look at
// every node, so it is taken now and then, and only while there is such an alert.

import { livesBy } from '#domain/ca/issuer-withdrawal.ts'
import type { IssuerId, NodeId } from '#domain/core/node.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Timers } from '#platform/timers.ts'
import { settleAlert, type SettleDeps } from './settle-alert.ts'
import type { StandingAlerts } from './standing-alerts.ts'

export type WatchWithdrawnDeps = SettleDeps & {
  readonly store: Pick<Store, 'get' | 'commit' | 'nodes' | 'issuers'>
  readonly standing: StandingAlerts
  readonly timers: Pick<Timers, 'soon'>
}

const lookEveryMs = 30_000
const pageSize = 200

export const openWithdrawnWatch = (deps: WatchWithdrawnDeps): (() => Promise<void>) => {
  let lookedAtMs = -Infinity
  return async () => {
    const standing = [...deps.standing.all()].filter(({ kind }) => kind === 'authority_compromised')
    const nowMs = deps.clock.monotonicMs()
    if (standing.length === 0 || nowMs - lookedAtMs < lookEveryMs) return
    lookedAtMs = nowMs
    const issuers = (await deps.store.issuers()).map(({ value }) => value)
    const withdrawn = issuers.filter(({ compromisedAtMs }) => compromisedAtMs !== null).map(({ id }) => id)
    if (await anybodyLivesBy(deps, withdrawn)) return
    for (const { kind, subject, node } of standing) {
      await settleAlert(deps, async () => ({ about: { kind, subject, node }, wanted: null, reliedOn: [] }))
    }
  }
}

const anybodyLivesBy = async (
  { store, timers }: WatchWithdrawnDeps,
  issuers: readonly IssuerId[],
): Promise<boolean> => {
  for (let after: NodeId | null = null; ;) {
    const page = await store.nodes({ membership: null, profile: null, after, limit: pageSize })
    if (page.some(({ value }) => livesBy(value, issuers))) return true
    after = page.at(-1)?.value.id ?? null
    if (page.length < pageSize || after === null) return false
    await new Promise<void>((resolve) => timers.soon(resolve))
  }
}
