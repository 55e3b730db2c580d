// What the agents that have a channel on this replica reported last. Each node is here on the replica that holds its channel and on
// no other, so that sums over replicas count it once. In memory only: after a restart it fills within one interval of reports.

import type { Node, NodeId } from '#domain/core/node.ts'
import type { OutputSeen } from '#domain/programs/outputs-shown.ts'
import { parseIsoTime, type Clock } from '#platform/clock.ts'
import type { ReportBody } from '#wire/node/report.ts'
import { countsOf, growthSince, noCounts, type Counts } from './agent-counts.ts'

export type NodeFigures = {
  readonly profile: string
  /** Null: maintenance mode. */
  readonly vcluster: string | null
  /** When the plane took the report, by its own clock. */
  readonly reportedAtMs: number
  /** As the agent says. Null: what it said is no time. */
  readonly certificateEndsMs: number | null
  readonly clockSkewMs: number
  readonly freeBytes: ReportBody['storage']['free_bytes']
  readonly counts: Counts
  readonly outputs: readonly OutputSeen[]
}

export type AgentFigures = {
  /** What the store has of its last report: what it counts from now on is counted from there. */
  recalled(node: NodeId, report: ReportBody): void
  /** With the row as it is now. A report that is older than the last one is ignored. */
  reported(node: Node, report: ReportBody): void
  outputs(node: NodeId, outputs: readonly OutputSeen[]): void
  /** It has no channel here any more. */
  gone(node: NodeId): void
  /** Those that have reported over a channel of this replica. */
  all(): Iterable<readonly [NodeId, NodeFigures]>
}

type Process = { readonly instance: string; readonly number: number; readonly counts: Counts }
type Known = { process: Process | null; figures: NodeFigures | null; outputs: readonly OutputSeen[] }

const mostNodes = 200_000

/** `onGrowth`: what a report adds to the counts before it. */
export const openAgentFigures = (
  clock: Pick<Clock, 'nowMs'>,
  onGrowth: (node: Pick<Node, 'profile' | 'assignment'>, growth: Counts) => void,
): AgentFigures => {
  const nodes = new Map<NodeId, Known>()
  const knownOf = (node: NodeId): Known => {
    const known = nodes.get(node) ?? { process: null, figures: null, outputs: [] }
    nodes.set(node, known)
    // What is recalled of a node that has left meanwhile stays: it must not stay for good.
    const [oldest] = nodes.keys()
    if (nodes.size > mostNodes && oldest !== undefined) nodes.delete(oldest)
    return known
  }
  return {
    recalled(node, report) {
      const known = knownOf(node)
      known.process ??= { instance: report.instance, number: report.number, counts: countsOf(report) }
    },
    reported(node, report) {
      const known = knownOf(node.id)
      const { instance, number } = report
      const isSame = known.process?.instance === instance
      if (isSame && known.figures !== null && number <= (known.process?.number ?? 0)) return
      const counts = countsOf(report)
      const growth = growthSince(isSame ? (known.process?.counts ?? noCounts) : noCounts, counts)
      known.process = { instance, number, counts }
      known.figures = {
        profile: node.profile,
        vcluster: node.assignment,
        reportedAtMs: clock.nowMs(),
        certificateEndsMs: parseIsoTime(report.certificate.not_after),
        clockSkewMs: report.clock_skew_ms,
        freeBytes: report.storage.free_bytes,
        counts,
        outputs: known.outputs,
      }
      if (growth.length > 0) onGrowth(node, growth)
    },
    outputs(node, outputs) {
      const known = knownOf(node)
      known.outputs = outputs
      if (known.figures !== null) known.figures = { ...known.figures, outputs }
    },
    gone: (node) => void nodes.delete(node),
    *all() {
      for (const [node, { figures }] of nodes) if (figures !== null) yield [node, figures] as const
    },
  }
}
