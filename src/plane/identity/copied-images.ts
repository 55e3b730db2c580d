// The alert for a key that another node holds: both machines were started from one image, or from one copy of a state folder.

import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { NodeId } from '#domain/core/node.ts'
import { otherOwners, type KeyClaimFacts } from '#domain/identity/key-claim.ts'
import { raiseAlert } from '#plane/alerts/reconcile-alerts.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type CopiedImages = {
  /**
   * A machine brought a key that another node holds. One alert for each key, which stays until an operator acknowledges it.
   * A node that brings its own earlier key raises none.
   */
  raise(claimant: NodeId, claims: KeyClaimFacts, source: string | null): Promise<void>
}

/** Which nodes brought a key, as far as this process has seen it of late, and how many of them the alert has named. */
type Claimants = { readonly ids: Set<NodeId>; alerted: number; alertedAtMs: number; seenAtMs: number }

const mostKeys = 100
const mostClaimants = 1000
const mostNamed = 5
const alertAgainMs = 10_000
const rememberedMs = 24 * 3_600_000

export const openCopiedImages = (core: FlowCore): CopiedImages => {
  const keys = new Map<string, Claimants>()
  return {
    async raise(claimant, claims, source) {
      for (const claim of [claims.certified, claims.registered]) {
        const [holder, ...more] = otherOwners(claim, claimant)
        if (claim === null || holder === undefined) continue
        const { spki } = claim.value
        const holders = more.length === 0 ? holder : `${holder} and ${more.length} more`
        const { names, isNews } = noted(claimantsOf(keys, spki, core.clock.monotonicMs()), claimant)
        const evidence = { claimants: names, holders, source }
        const sinceMs = isNews ? core.clock.nowMs() : null
        await raiseAlert(core, wantedAlert('copied_image', spki, evidence, { node: holder, sinceMs }))
      }
    },
  }
}

/** Kept in the order they were seen in. A key is forgotten after a day without use, and the oldest beyond this number. */
const claimantsOf = (keys: Map<string, Claimants>, spki: string, nowMs: number): Claimants => {
  for (const [key, { seenAtMs }] of keys) {
    if (nowMs - seenAtMs < rememberedMs) break
    keys.delete(key)
  }
  const known = keys.get(spki) ?? { ids: new Set<NodeId>(), alerted: 0, alertedAtMs: 0, seenAtMs: nowMs }
  known.seenAtMs = nowMs
  keys.delete(spki)
  keys.set(spki, known)
  const [oldest] = keys.keys()
  if (keys.size > mostKeys && oldest !== undefined) keys.delete(oldest)
  return known
}

/**
 * A copied image brings hundreds of machines within a minute: the alert is raised again when they have doubled, or some time
 * after it was raised last, and not for each of them.
 */
const noted = (known: Claimants, claimant: NodeId): { readonly names: string; readonly isNews: boolean } => {
  if (known.ids.size < mostClaimants) known.ids.add(claimant)
  const { size } = known.ids
  const { seenAtMs: nowMs } = known
  const isFirst = known.alerted === 0
  const isDue = size >= known.alerted * 2 || (size > known.alerted && nowMs - known.alertedAtMs >= alertAgainMs)
  if (isDue) [known.alerted, known.alertedAtMs] = [size, nowMs]
  const more = size - mostNamed
  const named = [...known.ids].slice(0, mostNamed).join(', ')
  const others = more > 0 ? ` and ${more}${size === mostClaimants ? ' or' : ''} more` : ''
  // The first since a start raises an alert only if there is none yet.
  return { names: `${named}${others}`, isNews: isDue && !isFirst }
}
