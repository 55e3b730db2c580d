// What the agents on this replica reported, added up by vCluster and profile. It looks at every node that has a channel here, so it
// is taken periodically, a slice at a time, and shared by all callers.

import type { Clock } from '#platform/clock.ts'
import { turn, type Timers } from '#platform/timers.ts'
import type { AgentFigures, NodeFigures } from '#plane/node/agent-figures.ts'
import type { GroupLabels, Groups } from './group-labels.ts'

export const freeSpaceUses = ['identity', 'diagnostic', 'retry', 'runtime'] as const
type FreeSpaceUse = (typeof freeSpaceUses)[number]

export type AgentGroup = {
  nodes: number
  /** When the report was taken that is oldest of all. */
  oldestReportMs: number
  /** By how much the clock that is off most is off, in either direction. */
  mostSkewMs: number
  readonly leastFreeBytes: Record<FreeSpaceUse, number>
  outputsInPlace: number
  outputsFailing: number
  /** When the first leaf of a program ends; null: there is none. */
  firstLeafEndMs: number | null
}

export type AgentCensus = ReadonlyMap<GroupLabels, Readonly<AgentGroup>>

const keptMs = 10_000
const sliceSize = 1000

type CensusCore = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly timers: Pick<Timers, 'soon'> }

/** Not older than ten seconds, however often it is asked for. */
export const openAgentCensus = (
  core: CensusCore,
  figures: Pick<AgentFigures, 'all'>,
  groups: Pick<Groups, 'of'>,
): (() => Promise<AgentCensus>) => {
  let known: { readonly census: Promise<AgentCensus>; readonly sinceMs: number } | null = null
  return () => {
    const nowMs = core.clock.monotonicMs()
    if (known === null || nowMs - known.sinceMs >= keptMs)
      known = { census: takeCensus(core, figures, groups), sinceMs: nowMs }
    return known.census
  }
}

const takeCensus = async (
  { timers }: CensusCore,
  figures: Pick<AgentFigures, 'all'>,
  groups: Pick<Groups, 'of'>,
): Promise<AgentCensus> => {
  const census = new Map<GroupLabels, AgentGroup>()
  let looked = 0
  for (const [, node] of figures.all()) {
    if (++looked % sliceSize === 0) await turn(timers)
    const labels = groups.of(node.vcluster, node.profile)
    const group = census.get(labels) ?? emptyGroup()
    census.set(labels, group)
    add(group, node)
  }
  return census
}

const emptyGroup = (): AgentGroup => ({
  nodes: 0,
  oldestReportMs: Number.POSITIVE_INFINITY,
  mostSkewMs: 0,
  leastFreeBytes: {
    identity: Number.POSITIVE_INFINITY,
    diagnostic: Number.POSITIVE_INFINITY,
    retry: Number.POSITIVE_INFINITY,
    runtime: Number.POSITIVE_INFINITY,
  },
  outputsInPlace: 0,
  outputsFailing: 0,
  firstLeafEndMs: null,
})

const add = (group: AgentGroup, { reportedAtMs, clockSkewMs, freeBytes, outputs }: NodeFigures): void => {
  group.nodes++
  group.oldestReportMs = Math.min(group.oldestReportMs, reportedAtMs)
  group.mostSkewMs = Math.max(group.mostSkewMs, Math.abs(clockSkewMs))
  for (const use of freeSpaceUses) group.leastFreeBytes[use] = Math.min(group.leastFreeBytes[use], freeBytes[use])
  for (const { inPlace, endsMs } of outputs) {
    if (inPlace) group.outputsInPlace++
    else group.outputsFailing++
    if (endsMs !== null) group.firstLeafEndMs = Math.min(group.firstLeafEndMs ?? endsMs, endsMs)
  }
}
