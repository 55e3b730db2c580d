// What a list says of a node.

import { isoTime, parseIsoTime } from '#platform/clock.ts'
import type { NodeView } from '#wire/node/node-api.ts'
import { formatAgo, formatSpan } from '#cli/kit/duration.ts'
import type { Column } from '#cli/kit/list.ts'
import type { Colour } from '#cli/kit/print.ts'
import type { Cell } from '#cli/kit/table.ts'

export const nodeColumns = (nowMs: number): readonly Column<NodeView>[] => [
  { name: 'name', cell: ({ id }) => id },
  { name: 'state', cell: stateCell, value: ({ state }) => state },
  { name: 'profile', cell: ({ profile }) => profile },
  { name: 'vcluster', cell: ({ vcluster }) => vcluster ?? '' },
  { name: 'connected', cell: connectedCell },
  { name: 'cert', cell: (node) => certCell(node, nowMs), value: ({ cert_not_after: end }) => end },
  {
    name: 'seen',
    cell: (node) => seenText(node, nowMs),
    value: ({ channel_open: open, last_seen: seen }) => (open ? isoTime(nowMs) : seen),
  },
  {
    name: 'conditions',
    cell: ({ conditions }) => ({ text: conditions.map(({ name }) => name).join(', '), colour: 'yellow' }),
  },
  {
    name: 'scheduling',
    cell: ({ scheduling: { state } }) => ({ text: state, colour: state === 'schedulable' ? 'green' : 'yellow' }),
    wide: true,
  },
  {
    name: 'allocations',
    cell: ({ allocations }) => String(allocations),
    value: ({ allocations }) => allocations,
    wide: true,
  },
  { name: 'reasons', cell: ({ scheduling: { reasons } }) => reasons.join(', '), wide: true },
  {
    name: 'recoverable',
    cell: ({ recoverable: { proven } }) => ({
      text: proven ? 'yes' : 'not proven',
      colour: proven ? 'green' : 'yellow',
    }),
    wide: true,
  },
  { name: 'why', cell: ({ recoverable: { why } }) => why, wide: true },
  { name: 'epoch', cell: ({ epoch }) => String(epoch), value: ({ epoch }) => epoch, wide: true },
  { name: 'assurance', cell: ({ assurance }) => assurance, wide: true },
  { name: 'agent', cell: ({ agent_version: version }) => version ?? '', wide: true },
  { name: 'tags', cell: ({ tags = [] }) => tags.join(', '), wide: true },
  { name: 'since', cell: ({ since }) => since, wide: true },
]

/** `active, draining`: with what keeps work away on purpose. */
const stateCell = (node: NodeView): Cell => {
  const { state: membership, scheduling, provisioning } = node
  if (node.unreadable !== undefined) return { text: 'unreadable', colour: 'red' }
  const drain = ['draining', 'drained'].includes(scheduling.state) ? [scheduling.state] : []
  const { state = 'deployed' } = provisioning ?? {}
  const also = [...drain, ...(state === 'deployed' ? [] : [state])]
  const colour = also.length === 0 ? (stateColours[membership] ?? 'plain') : 'yellow'
  return { text: [membership, ...also].join(', '), colour }
}

const stateColours: Readonly<Record<string, Colour>> = {
  active: 'green',
  quarantined: 'yellow',
  inactive: 'yellow',
  revoked: 'red',
}

const connectedCell = ({ channel_open: open }: NodeView): Cell => (open ? { text: 'yes', colour: 'green' } : 'no')

const certCell = (node: NodeView, nowMs: number): Cell => {
  const notAfterMs = node.cert_not_after === null ? null : parseIsoTime(node.cert_not_after)
  if (notAfterMs === null) return 'none'
  return notAfterMs > nowMs
    ? formatSpan(notAfterMs - nowMs)
    : { text: `expired ${formatAgo(notAfterMs, nowMs)}`, colour: 'red' }
}

export const seenText = (node: NodeView, nowMs: number): string => {
  if (node.channel_open) return 'now'
  const seenMs = node.last_seen === null ? null : parseIsoTime(node.last_seen)
  return seenMs === null ? 'never' : formatAgo(seenMs, nowMs)
}
