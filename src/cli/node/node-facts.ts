// Everything known of a node, in the order an operator asks: what, why, until when, from where.

import { parseIsoTime } from '#platform/clock.ts'
import type { NodeDetail } from '#wire/node/node-api.ts'
import { formatAgo, formatSpan } from '#cli/kit/duration.ts'
import { evidenceLines, repairLines } from './node-evidence-lines.ts'
import { moment } from '#cli/kit/moment.ts'
import { capabilityLines, driftLines, overlayLines, schedulingText, vclusterText } from './node-runs-lines.ts'
import { seenText } from './node-list.ts'

type Fact = readonly [name: string, value: string | readonly string[]]

export const nodeFacts = (node: NodeDetail, nowMs: number): Fact[] => [
  ['node', node.id],
  [
    'state',
    node.unreadable === undefined ? `${node.membership}, since ${moment(node.since, nowMs)}` : 'unreadable, shut out',
  ],
  ...some('why', node.why),
  ['profile', node.profile],
  ['epoch', String(node.epoch)],
  ['assurance', node.assurance],
  ['vcluster', vclusterText(node)],
  ...some('runs', overlayLines(node)),
  ...some('drift', driftLines(node)),
  ['scheduling', schedulingText(node.scheduling)],
  ...(node.allocations === 0 ? [] : [['allocations', String(node.allocations)] as const]),
  ['certificates', orNone(node.certificates.map((certificate) => certificateLine(certificate, nowMs)))],
  ['seen', seenText(node, nowMs).replace(/^seen /, '') + (node.last_seen === null ? '' : ` (${node.last_seen})`)],
  ...some(
    'channels',
    node.sessions.map(
      ({ number, since }) =>
        `session ${number}, ${since === null ? 'on another replica' : `since ${moment(since, nowMs)}`}`,
    ),
  ),
  ['conditions', orNone(node.conditions.map((condition) => conditionLine(condition, nowMs)))],
  ...some(
    'approvals',
    node.approvals.map((approval) => `${approval.by}, ${moment(approval.at, nowMs)}`),
  ),
  ['hardware', orNone([...node.hardware.macs.map((mac) => `mac ${mac}`), ...bmc(node.hardware.bmc_serial)])],
  ...(node.facts === null ? [] : [['machine', machine(node.facts)] as const]),
  ...some('wireguard', node.wireguard ? wireguardLines(node.wireguard) : []),
  ...some('can', capabilityLines(node.capabilities)),
  ['recoverable', `${node.recoverable.proven ? 'proven' : 'not proven'}: ${node.recoverable.why}`],
  ...some('repair', node.repair === null ? [] : repairLines(node.repair, nowMs)),
  ...some('reported', evidenceLines(node.evidence, nowMs)),
  ['agent', node.agent_version ?? 'unknown'],
  ...(node.source === null ? [] : [['address', node.source] as const]),
  ...(node.config_revision === null ? [] : [['configuration', `revision ${node.config_revision}`] as const]),
  ['registered', `${moment(node.registered_at, nowMs)} by ${node.registered_by}`],
]

const wireguardLines = (wireguard: NonNullable<NodeDetail['wireguard']>): string[] => [
  `key ${wireguard.public_key}`,
  `address ${wireguard.address}`,
  `endpoint ${wireguard.endpoint ?? 'none: it calls first'}`,
  `peers ${wireguard.group === null ? 'none' : `those of ${wireguard.group}`}`,
  `applied ${wireguard.applied_revision === null ? 'unknown' : `revision ${wireguard.applied_revision.slice(0, 12)}`}`,
]

const some = (name: string, lines: readonly string[]): Fact[] => (lines.length === 0 ? [] : [[name, lines]])
const orNone = (lines: readonly string[]): readonly string[] => (lines.length === 0 ? ['none'] : lines)
const bmc = (serial: string | null): string[] => (serial === null ? [] : [`bmc serial ${serial}`])

const certificateLine = (certificate: NodeDetail['certificates'][number], nowMs: number): string => {
  const notAfterMs = parseIsoTime(certificate.not_after) ?? nowMs
  const until =
    notAfterMs > nowMs ? `expires in ${formatSpan(notAfterMs - nowMs)}` : `expired ${formatAgo(notAfterMs, nowMs)}`
  return `${certificate.slot}  serial ${certificate.serial}  ${until} (${certificate.not_after})`
}

const conditionLine = (condition: NodeDetail['conditions'][number], nowMs: number): string => {
  const evidence = Object.entries(condition.evidence).map(([name, value]) => `${name}=${String(value)}`)
  return [`${condition.name}, since ${moment(condition.since, nowMs)}: ${condition.reason}`, ...evidence].join('  ')
}

const machine = (facts: NonNullable<NodeDetail['facts']>): string =>
  `${facts.cpu_cores} cores, ${gibibytes(facts.memory_bytes)} memory, ${gibibytes(facts.disk_bytes)} disk, ${facts.arch}`

const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(bytes < 100 * 2 ** 30 ? 1 : 0)} GiB`
