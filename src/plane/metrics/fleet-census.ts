// Figures about all nodes. Each census reads every node, so it is taken periodically, in pages that let other work run in between,
// and shared by all callers.

import { conditionNames, rehearsalSteps, type ConditionName, type Node } from '#domain/core/node.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import { isToRecover } from '#domain/core/recoverability.ts'
import { profilesByName, recoverabilityNow } from '#plane/core/count-recoverable.ts'
import { nodePages } from '#plane/core/pages.ts'
import type { Core } from '#plane/core/core.ts'
import type { GroupLabels, Groups } from './group-labels.ts'

export type FleetCensus = {
  readonly groups: ReadonlyMap<GroupLabels, GroupCensus>
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

/** Of the nodes of one vCluster and profile. */
export type GroupCensus = {
  readonly conditions: Readonly<Record<ConditionName, number>>
  /** When the newest certificate of a node ends, of that node for which it is first; null: no node has one. */
  readonly firstEndMs: number | null
}

const hour = 3_600_000
export const expiryRanges = { '1h': hour, '6h': 6 * hour, '24h': 24 * hour, '7d': 7 * 24 * hour } as const
export type ExpiryRange = keyof typeof expiryRanges

type CensusCore = Pick<Core, 'store' | 'clock' | 'timers'>

const keptMs = 30_000
const pageSize = 200
const overdueAt = 5 / 6

/** Not older than half a minute, however often it is asked for. `groups` forgets those that no node is in. */
export const openFleetCensus = (
  core: CensusCore,
  groups: Groups,
  onForgotten: (forgotten: readonly GroupLabels[]) => void,
): (() => Promise<FleetCensus>) => {
  let known: { readonly census: Promise<FleetCensus>; readonly sinceMs: number } | null = null
  return () => {
    const nowMs = core.clock.monotonicMs()
    if (known !== null && nowMs - known.sinceMs < keptMs) return known.census
    const census = takeCensus(core, groups).then((taken) => {
      onForgotten(groups.keepOnly(new Set(taken.groups.keys())))
      return taken
    })
    const mine = { census, sinceMs: nowMs }
    known = mine
    // Waiting callers get the failure; the next caller tries again.
    mine.census.catch(() => {
      if (known === mine) known = null
    })
    return mine.census
  }
}

const takeCensus = async (core: CensusCore, groups: Groups): Promise<FleetCensus> => {
  const profiles = await profilesByName(core.store)
  const tally = {
    groups: new Map<GroupLabels, GroupTally>(),
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
      const group = groupTally(tally.groups, groups.of(node.assignment, node.profile))
      // A replica of a later release may have raised one that this release has no gauge for.
      for (const { name } of node.conditions) if (Object.hasOwn(group.conditions, name)) group.conditions[name]++
      countCertificate(tally, group, node, nowMs)
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
type GroupTally = { readonly conditions: Record<ConditionName, number>; firstEndMs: number | null }

const groupTally = (groups: Map<GroupLabels, GroupTally>, labels: GroupLabels): GroupTally => {
  const tally = groups.get(labels) ?? { conditions: zeros(conditionNames), firstEndMs: null }
  groups.set(labels, tally)
  return tally
}

const countCertificate = (tally: Tally, group: GroupTally, node: Node, nowMs: number): void => {
  const slots = slotsOf(node)
  if (slots === null) return
  const { issuedAtMs, notAfterMs } = slots.pending ?? slots.current
  group.firstEndMs = Math.min(group.firstEndMs ?? notAfterMs, notAfterMs)
  for (const [range, ms] of Object.entries(expiryRanges)) {
    if (notAfterMs - nowMs <= ms) tally.expiring[range as ExpiryRange]++
  }
  if (nowMs - issuedAtMs > (notAfterMs - issuedAtMs) * overdueAt) tally.overdue++
}

/** The codes in a reason come from nodes, and a label that others choose grows without end: only the step is kept. */
const wordFor = ({ rehearsal }: Node, why: string): UnrecoverableWord => {
  const [short = ''] = why.split(' (')
  const plain = plainWords.find((word) => word === short.replaceAll(' ', '_'))
  if (plain !== undefined) return plain
  return rehearsal?.outcome === 'failed' ? `failed_${rehearsal.step}` : 'other'
}

const plainWords = [
  'quarantined',
  'recovery_denied_by_profile',
  'nothing_registered',
  'recovery_denied_by_an_operator',
  'never_rehearsed',
  'not_rehearsed_in_its_new_epoch_yet',
  'stale',
] as const
const unrecoverableWords = [...plainWords, ...rehearsalSteps.map((step) => `failed_${step}` as const), 'other'] as const
type UnrecoverableWord = (typeof unrecoverableWords)[number]

const zeros = <K extends string>(names: readonly K[]): Record<K, number> =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>
