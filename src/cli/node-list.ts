import type { Static } from 'typebox'
import { parseIsoTime } from '#platform/clock.ts'
import { NodeListAnswer, type NodeView } from '#wire/operator-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { formatAgo, formatSpan } from './duration.ts'
import { connect, type OperatorClient } from './operator-client.ts'
import type { Colour } from './paint.ts'
import { printer } from './print.ts'
import { renderTable, type Cell } from './table.ts'

export type NodeListOptions = GlobalOptions & { readonly state?: string; readonly profile?: string }

export const nodeList = async (cli: Cli, options: NodeListOptions): Promise<void> => {
  const plane = connect(cli, options)
  const nodes = await everyNode(plane, options)
  const print = printer(cli, options)
  const nowMs = cli.clock.nowMs()
  print.answer({ nodes }, (paint) =>
    renderTable(
      nodes.map((node) => nodeRow(node, nowMs)),
      paint,
    ),
  )
  if (nodes.length > 0) return
  const filtered = options.state !== undefined || options.profile !== undefined
  print.note(
    filtered ? 'no such nodes; all: muster node list' : 'no nodes; a first one: muster token create --node gpu-001',
  )
}

export const everyNode = async (
  plane: OperatorClient,
  options: Pick<NodeListOptions, 'state' | 'profile'>,
): Promise<NodeView[]> => {
  const nodes: NodeView[] = []
  let after: string | undefined
  do {
    const page: Static<typeof NodeListAnswer> = await plane.ask({
      method: 'GET',
      path: '/v1/nodes',
      query: { membership: options.state, profile: options.profile, after, limit: 1000 },
      answer: NodeListAnswer,
    })
    nodes.push(...page.nodes)
    after = page.next ?? undefined
  } while (after !== undefined)
  return nodes
}

/** `gpu-001  active  profile gpu-cloud  cert 23h 59m  seen now`, and what is odd about it. */
export const nodeRow = (node: NodeView, nowMs: number): Cell[] => [
  node.id,
  { text: node.membership, colour: stateColours[node.membership] ?? 'plain' },
  `profile ${node.profile}`,
  certCell(node, nowMs),
  seenText(node, nowMs),
  oddities(node),
]

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
  return { text: [...drain, ...node.conditions.map(({ name }) => name)].join(', '), colour: 'yellow' }
}
