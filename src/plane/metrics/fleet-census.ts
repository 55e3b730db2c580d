// Figures about all nodes. Each census reads every node, so it is taken periodically, in pages that let other work run in between,
// and shared by all callers.

import { conditionNames, rehearsalSteps, type ConditionName, type Node } from '#domain/core/node.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import { isToRecover } from '#domain/core/recoverability.ts'
import { profilesByName, recoverabilityNow } from '#plane/core/count-recoverable.ts'
import { nodePages } from '#plane/core/pages.ts'
import type { Core } from '#plane/core/core.ts'

export type FleetCensus = {
  readonly conditions: Readonly<Record<ConditionName, number>>
  /** Nodes whose newest certificate ends within each time. */
  readonly expiring: Readonly<Record<ExpiryRange, number>>
  /** Nodes whose newest certificate is past five sixths of its life: renewing fails, or the node is away. */
  readonly overdue: number
  /** Those that have something to recover. */
  readonly nodes: number
  readonly recoverable: number
  /** Why the others are not, in a closed set of words. */
  readonly unrecoverable: Readonly<Record<string, number>>
}

const hour = 3_600_000
export const expiryRanges = { '1h': hour, '6h': 6 * hour, '24h': 24 * hour, '7d': 7 * 24 * hour } as const
export type ExpiryRange = keyof typeof expiryRanges

type CensusCore = Pick<Core, 'store' | 'clock' | 'timers'>

const keptMs = 30_000
const pageSize = 200
const overdueAt = 5 / 6

/** Not older than half a minute, however often it is asked for. */
export const openFleetCensus = (core: CensusCore): (() => Promise<FleetCensus>) => {
  let known: { readonly census: Promise<FleetCensus>; readonly sinceMs: number } | null = null
  return () => {
    const nowMs = core.clock.monotonicMs()
    if (known !== null && nowMs - known.sinceMs < keptMs) return known.census
    const mine = { census: takeCensus(core), sinceMs: nowMs }
    known = mine
    // Waiting callers get the failure; the next caller tries again.
    mine.census.catch(() => {
      if (known === mine) known = null
    })
    return mine.census
  }
}

const takeCensus = async (core: CensusCore): Promise<FleetCensus> => {
  const profiles = await profilesByName(core.store)
  const tally = {
    conditions: zeros(conditionNames),
    expiring: zeros(Object.keys(expiryRanges) as ExpiryRange[]),
    overdue: 0,
    nodes: 0,
    recoverable: 0,
    unrecoverable: zeros(unrecoverableWords),
  }
  for await (const page of nodePages(core.store, { limit: pageSize, timers: core.timers })) {
    const nowMs = core.clock.nowMs()
    for (const { value: node } of page) {
      if (node.membership.kind === 'revoked') continue
      // A replica of a later release may have raised one that this release has no gauge for.
      for (const { name } of node.conditions) if (Object.hasOwn(tally.conditions, name)) tally.conditions[name]++
      countCertificate(tally, node, nowMs)
      const profile = profiles.get(node.profile)
      if (profile !== undefined && !isToRecover(node, profile)) continue
      tally.nodes++
      const { recoverable, why } = await recoverabilityNow(core.store, node, profiles, nowMs)
      if (recoverable) tally.recoverable++
      else tally.unrecoverable[wordFor(node, why)]++
    }
  }
  return tally
}

type Tally = { readonly expiring: Record<ExpiryRange, number>; overdue: number }

const countCertificate = (tally: Tally, node: Node, nowMs: number): void => {
  const slots = slotsOf(node)
  if (slots === null) return
  const { issuedAtMs, notAfterMs } = slots.pending ?? slots.current
  for (const [range, ms] of Object.entries(expiryRanges)) {
    if (notAfterMs - nowMs <= ms) tally.expiring[range as ExpiryRange]++
  }
  if (nowMs - issuedAtMs > (notAfterMs - issuedAtMs) * overdueAt) tally.overdue++
}

/** The codes in a reason come from nodes, and a label that others choose grows without end: only the step is kept. */
const wordFor = ({ rehearsal }: Node, why: string): UnrecoverableWord => {
  const plain = plainWords.find((word) => word === why.replaceAll(' ', '_'))
  if (plain !== undefined) return plain
  return rehearsal?.outcome === 'failed' ? `failed_${rehearsal.step}` : 'other'
}

const plainWords = [
  'quarantined',
  'recovery_denied_by_profile',
  'nothing_registered',
  'recovery_denied_by_an_operator',
  'never_rehearsed',
  'stale',
] as const
const unrecoverableWords = [...plainWords, ...rehearsalSteps.map((step) => `failed_${step}` as const), 'other'] as const
type UnrecoverableWord = (typeof unrecoverableWords)[number]

const zeros = <K extends string>(names: readonly K[]): Record<K, number> =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>
