// One alert brought into line with what is wanted now: read, decide, commit, publish. A race that is lost is decided again.

import { alertKey } from '#domain/alerts/alert.ts'
import { decideAlert, type AlertFacts } from '#domain/alerts/alert-decisions.ts'
import { readOf } from '#domain/core/change.ts'
import { alertsOfNode, nodeAlertKinds } from '#domain/alerts/alert-wanted.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Clock } from '#platform/clock.ts'
import { sortableId, type Random } from '#platform/random.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'
import type { StandingAlerts } from './standing-alerts.ts'

export type SettleDeps = CommitDeps & {
  readonly store: Pick<Store, 'get' | 'commit'>
  readonly clock: Clock
  readonly random: Random
}

export type AlertLook = Pick<AlertFacts, 'about' | 'wanted' | 'reliedOn'>

const by = { actor: 'system:alerts', source: null, correlation: null }

/** `look` reads what it needs each time it is called. `busy`: somebody else was always quicker; to be tried again later. */
export const settleAlert = async (deps: SettleDeps, look: () => Promise<AlertLook>): Promise<'settled' | 'busy'> => {
  const done = await commitDecision(deps, async () => {
    const seen = await look()
    const standing = await deps.store.get('alert', alertKey(seen.about))
    const nowMs = deps.clock.nowMs()
    return decideAlert({ ...seen, standing, newId: sortableId(nowMs, deps.random), by, nowMs })
  })
  return done.kind === 'refused' ? 'busy' : 'settled'
}

/** All alerts that follow one node. */
export const settleNodeAlerts = async (
  deps: SettleDeps & { readonly standing: StandingAlerts },
  id: NodeId,
): Promise<'settled' | 'busy'> => {
  const node = await deps.store.get('node', id)
  if (node === null) return 'settled'
  const wanted = new Set(alertsOfNode(node.value).map(({ kind }) => kind))
  const concerned = nodeAlertKinds.filter((kind) => wanted.has(kind) || deps.standing.has(kind, id))
  const outcomes = await Promise.all(
    concerned.map((kind) =>
      settleAlert(deps, async () => {
        const now = await deps.store.get('node', id)
        return {
          about: { kind, subject: id, node: id },
          wanted: (now === null ? [] : alertsOfNode(now.value)).find((one) => one.kind === kind) ?? null,
          reliedOn: [readOf('node', id, now)],
        }
      }),
    ),
  )
  return outcomes.includes('busy') ? 'busy' : 'settled'
}
