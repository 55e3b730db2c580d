import { counted } from '#domain/core/in-words.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { Recoverability } from '#wire/node/node-evidence.ts'
import { type NodeView, nodeApi } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo, formatSpan } from '#cli/kit/duration.ts'
import { connect, everyPage, type OperatorClient } from '#cli/kit/operator-client.ts'
import { type Colour, printer } from '#cli/kit/print.ts'
import { renderTable, type Cell } from '#cli/kit/table.ts'

type NodeListOptions = GlobalOptions & {
  readonly state?: NodeView['membership']
  readonly profile?: string
  readonly vcluster?: string
  /** `true`: all of them, with the answer. */
  readonly recoverable?: 'yes' | 'no' | true
  readonly schedulable?: 'yes' | 'no'
}

export const nodeList = async (cli: Cli, options: NodeListOptions): Promise<void> => {
  const plane = connect(cli, options)
  const nodes = await everyNode(plane, options)
  const print = printer(cli, options)
  const nowMs = cli.clock.nowMs()
  print.answer({ nodes }, (paint) =>
    renderTable(
      nodes.map((node) => rowFor(options, node, nowMs)),
      paint,
    ),
  )
  if (options.recoverable !== undefined) print.note(shareText(await recoverability(plane)))
  if (nodes.length > 0) return
  const filtered = [options.state, options.profile, options.vcluster, options.recoverable, options.schedulable].some(
    (filter) => filter !== undefined,
  )
  print.note(
    filtered ? 'no nodes match; all: muster node list' : 'no nodes; a first one: muster token create --node gpu-001',
  )
}

export const everyNode = async (
  plane: OperatorClient,
  options: Pick<NodeListOptions, 'state' | 'profile' | 'vcluster' | 'recoverable' | 'schedulable'>,
): Promise<NodeView[]> => {
  const { state, profile, vcluster, schedulable } = options
  const recoverable = options.recoverable === true ? undefined : options.recoverable
  return everyPage(
    (after) =>
      plane.ask(nodeApi.list, {
        query: { membership: state, profile, vcluster, schedulable, recoverable, after, limit: 1000 },
      }),
    (page) => page.nodes,
  )
}

const rowFor = ({ recoverable, schedulable }: NodeListOptions, node: NodeView, nowMs: number): Cell[] => {
  if (recoverable !== undefined) return recoverableRow(node)
  return schedulable === undefined ? nodeRow(node, nowMs) : schedulableRow(node)
}

const recoverability = (plane: OperatorClient): Promise<Recoverability> => plane.ask(nodeApi.recoverability)

const shareText = ({ nodes, proven, why }: Recoverability): string => {
  const rest = why.map(({ why: reason, count }) => `${count} ${reason}`).join('; ')
  return `${proven} of ${nodes} proven recoverable${rest === '' ? '' : `; not: ${rest}`}`
}

const recoverableRow = (node: NodeView): Cell[] => {
  const { id, profile, recoverable } = node
  return [
    id,
    stateCell(node),
    `profile ${profile}`,
    { text: recoverable.proven ? 'recoverable' : 'not proven', colour: recoverable.proven ? 'green' : 'yellow' },
    recoverable.why,
  ]
}

const schedulableRow = (node: NodeView): Cell[] => {
  const { id, vcluster, scheduling, allocations } = node
  return [
    id,
    stateCell(node),
    vcluster === null ? 'no vcluster' : `vcluster ${vcluster}`,
    { text: scheduling.state, colour: scheduling.state === 'schedulable' ? 'green' : 'yellow' },
    counted(allocations, 'allocation'),
    scheduling.reasons.join(', '),
  ]
}

/** `gpu-001  active  profile gpu-cloud  cert 23h 59m  seen now`, and what is odd about it. */
export const nodeRow = (node: NodeView, nowMs: number): Cell[] => [
  node.id,
  stateCell(node),
  `profile ${node.profile}${node.vcluster === null ? '' : ` in ${node.vcluster}`}`,
  certCell(node, nowMs),
  seenText(node, nowMs),
  oddities(node),
]

const stateCell = ({ membership, unreadable }: NodeView): Cell =>
  unreadable === undefined
    ? { text: membership, colour: stateColours[membership] ?? 'plain' }
    : { text: 'unreadable', colour: 'red' }

const stateColours: Readonly<Record<string, Colour>> = {
  active: 'green',
  quarantined: 'yellow',
  inactive: 'yellow',
  revoked: 'red',
}

const certCell = (node: NodeView, nowMs: number): Cell => {
  const notAfterMs = node.cert_not_after === null ? null : parseIsoTime(node.cert_not_after)
  if (notAfterMs === null) return 'cert none'
  return notAfterMs > nowMs
    ? `cert ${formatSpan(notAfterMs - nowMs)}`
    : { text: `cert expired ${formatAgo(notAfterMs, nowMs)}`, colour: 'red' }
}

export const seenText = (node: NodeView, nowMs: number): string => {
  if (node.channel_open) return 'seen now'
  const seenMs = node.last_seen === null ? null : parseIsoTime(node.last_seen)
  return seenMs === null ? 'never seen' : `seen ${formatAgo(seenMs, nowMs)}`
}

const oddities = (node: NodeView): Cell => {
  const drain = ['draining', 'drained'].includes(node.scheduling.state) ? [node.scheduling.state] : []
  const { state = 'deployed' } = node.provisioning ?? {}
  const provisioning = state === 'deployed' ? [] : [state]
  return { text: [...drain, ...provisioning, ...node.conditions.map(({ name }) => name)].join(', '), colour: 'yellow' }
}
