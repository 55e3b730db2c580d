// GET /metrics/nodes: what the agents on this replica reported last, node by node, under the names of the agent's own metrics. One
// answer has a bounded number of nodes; more are asked for in shards. It is written as fast as it is read, and never held as a whole.

import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Clock } from '#platform/clock.ts'
import { turn, type Timers } from '#platform/timers.ts'
import { agentCounters, agentSeries, pairsOf, type AgentCounter } from '#plane/node/agent-counts.ts'
import type { AgentFigures, NodeFigures } from '#plane/node/agent-figures.ts'
import { inShard, type Shard } from '#plane/core/shard.ts'
import { freeSpaceUses } from './agent-census.ts'

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]
type NodeSeries = {
  readonly name: string
  readonly type: 'gauge' | 'counter'
  readonly help: string
  readonly labels: readonly string[]
  readonly samples: (node: NodeFigures, nowMs: number) => readonly Sample[]
}

const prefix = 'muster_node_agent_'
const nodeLabels = ['node', 'vcluster', 'profile'] as const

const gauge = (
  name: string,
  help: string,
  samples: NodeSeries['samples'],
  labels: readonly string[] = [],
): NodeSeries => ({
  name: `${prefix}${name}`,
  type: 'gauge',
  help,
  labels: [...nodeLabels, ...labels],
  samples,
})

/** Only those that are not 0, but where there is one alone: there are many nodes. */
const counter = (name: AgentCounter): NodeSeries => {
  const { help, labels } = agentCounters[name]
  return {
    name: `${prefix}${name}`,
    type: 'counter',
    help: labels.length === 0 ? help : `${help}; zeros are left out`,
    labels: [...nodeLabels, ...labels],
    samples({ counts }) {
      const found: Sample[] = []
      for (const [place, count] of pairsOf(counts)) {
        const series = agentSeries[place]
        if (series?.counter === name) found.push([series.labels, count])
      }
      return found.length === 0 && labels.length === 0 ? [[{}, 0]] : found
    },
  }
}

export const nodeSeries: readonly NodeSeries[] = [
  gauge(
    'cert_expiry_seconds',
    'Seconds until the certificate expires; below zero since it has',
    ({ certificateEndsMs }, nowMs) => (certificateEndsMs === null ? [] : [[{}, (certificateEndsMs - nowMs) / 1000]]),
  ),
  gauge(
    'last_successful_mtls_task_poll_timestamp',
    'When the plane took the last report of the agent, as a Unix time',
    ({ reportedAtMs }) => [[{}, reportedAtMs / 1000]],
  ),
  gauge('clock_skew_seconds', 'How far the clock of the node is behind that of the plane', ({ clockSkewMs }) => [
    [{}, clockSkewMs / 1000],
  ]),
  gauge(
    'node_filesystem_available_bytes',
    'Bytes that the agent may still write, by what for',
    ({ freeBytes }) => freeSpaceUses.map((use): Sample => [{ use }, freeBytes[use]]),
    ['use'],
  ),
  gauge(
    'program_cert_expiry_seconds',
    'Seconds until the leaf of a program expires, by output; below zero since it has',
    ({ outputs }, nowMs) =>
      outputs.flatMap(({ name: output, endsMs }) => (endsMs === null ? [] : [[{ output }, (endsMs - nowMs) / 1000]])),
    ['output'],
  ),
  gauge(
    'program_output_in_place',
    'Whether the newest leaf and lists of a program are in place and were read by it, by output',
    ({ outputs }) => outputs.map(({ name: output, inPlace }) => [{ output }, inPlace ? 1 : 0]),
    ['output'],
  ),
  ...(Object.keys(agentCounters) as AgentCounter[]).map(counter),
]

export type NodeMetrics = {
  /**
   * In the text format of Prometheus, piece by piece. Null: every node that has a channel here. An answer counts against the bound
   * until it is read to its end or its `return` is called, so an answer that is not read has to be returned.
   */
  text(shard: Shard | null): Promise<AsyncIterableIterator<string> | Refusal>
}

const mostNodes = 10_000
const mostAtOnce = 2
const sliceSize = 200
const retryAfterMs = 5000

export const openNodeMetrics = (
  { clock, timers }: { readonly clock: Pick<Clock, 'nowMs'>; readonly timers: Pick<Timers, 'soon'> },
  figures: Pick<AgentFigures, 'all'>,
  enabled: boolean,
): NodeMetrics => {
  let running = 0
  const nodesIn = async (shard: Shard | null): Promise<readonly (readonly [NodeId, NodeFigures])[]> => {
    const nodes: (readonly [NodeId, NodeFigures])[] = []
    let found = 0
    for (const one of figures.all()) {
      if (++found % 1000 === 0) await turn(timers)
      if (shard === null || inShard(shard, one[0])) nodes.push(one)
    }
    return nodes
  }
  return {
    async text(shard) {
      if (!enabled) return refuse('NOT_FOUND', 'metrics of single nodes are off: start the plane with --node-metrics')
      if (running >= mostAtOnce) return { ...refuse('BUSY', 'they are being read already'), retryAfterMs }
      // In the same turn as the comparison: collecting the nodes takes turns, in which others ask.
      running++
      let isAnswered = false
      try {
        const nodes = await nodesIn(shard)
        if (nodes.length > mostNodes) return tooMany(nodes.length, shard)
        const pieces = inPieces(timers, linesOf(nodes, clock.nowMs()), () => running--)
        isAnswered = true
        return pieces
      } finally {
        if (!isAnswered) running--
      }
    },
  }
}

/** `onEnd`: once, also where nothing was read. That is why it is no generator: one that was not started runs no `finally`. */
const inPieces = (
  timers: Pick<Timers, 'soon'>,
  lines: Generator<string, void, void>,
  onEnd: () => void,
): AsyncIterableIterator<string> => {
  let hasEnded = false
  const end = (): IteratorReturnResult<undefined> => {
    if (!hasEnded) onEnd()
    hasEnded = true
    return { done: true, value: undefined }
  }
  return {
    async next() {
      if (hasEnded) return end()
      await turn(timers)
      try {
        const line = lines.next()
        return line.done === true ? end() : line
      } catch (error) {
        end()
        throw error
      }
    },
    return: async () => end(),
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

const tooMany = (nodes: number, shard: Shard | null): Refusal => {
  const shards = Math.ceil((nodes * (shard?.of ?? 1) * 1.25) / mostNodes)
  const detail = `${nodes} nodes are more than ${mostNodes}: ask for shard=0/${shards} to shard=${shards - 1}/${shards}`
  return refuseField('REQUEST_INVALID', 'shard', detail)
}

/** By metric, as the format wants it. */
function* linesOf(nodes: readonly (readonly [NodeId, NodeFigures])[], nowMs: number): Generator<string, void, void> {
  for (const { name, type, help, samples } of nodeSeries) {
    yield `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
    for (let start = 0; start < nodes.length; start += sliceSize) {
      let piece = ''
      for (const [node, figures] of nodes.slice(start, start + sliceSize)) {
        const { vcluster, profile } = figures
        for (const [labels, value] of samples(figures, nowMs))
          piece += `${name}${labelText({ node, vcluster: vcluster ?? '', profile, ...labels })} ${value}\n`
      }
      if (piece !== '') yield piece
    }
  }
}

const labelText = (labels: Readonly<Record<string, string>>): string =>
  `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',')}}`

/** The names of outputs come from nodes. */
const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
