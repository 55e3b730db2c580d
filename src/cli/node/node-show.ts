// Everything known of a node, in the order an operator asks: what, why, until when, from where; and its story.

import { builtIn } from '#domain/core/profile.ts'
import { nodeApi, type NodeDetail } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { formatAgo, formatSpan, moment } from '#cli/kit/duration.ts'
import { seenText } from './node-columns.ts'
import type { NodeEvidence, RepairView, NodeExplanation } from '#wire/node/node-evidence.ts'
import { printable } from '#cli/kit/printable.ts'

export const nodeShow = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const detail = await connect(cli, options).ask(nodeApi.show, { params: { id }, about: { ID: id } })
  printer(cli, options).answer(detail, () =>
    renderFacts(nodeFacts(detail, cli.clock.nowMs())).map((line) => cli.hints.asCalled(line)),
  )
}

type Fact = readonly [name: string, value: string | readonly string[]]

const nodeFacts = (node: NodeDetail, nowMs: number): Fact[] => [
  ['node', node.id],
  [
    'state',
    node.unreadable === undefined ? `${node.state}, since ${moment(node.since, nowMs)}` : 'unreadable, shut out',
  ],
  ...some('why', node.why),
  ['profile', node.profile],
  ['epoch', String(node.epoch)],
  ['assurance', node.assurance],
  ['vcluster', vclusterText(node)],
  ...some('runs', overlayLines(node)),
  ...some('checks', checkLines(node, nowMs)),
  ...some('drift', driftLines(node)),
  ['scheduling', schedulingText(node.scheduling)],
  ...some('provisioning', node.provisioning ? [provisioningText(node.provisioning, nowMs)] : []),
  ...(node.allocations === 0 ? [] : [['allocations', String(node.allocations)] as const]),
  ['certificates', orNone(node.certificates.map((certificate) => certificateLine(certificate, nowMs)))],
  ...some('programs', programLines(node, nowMs)),
  ['seen', seenText(node, nowMs) + (node.last_seen === null ? '' : ` (${node.last_seen})`)],
  ...some(
    'channels',
    node.sessions.map(
      ({ number, since }) =>
        `session ${number}, ${since === null ? 'on another replica' : `since ${moment(since, nowMs)}`}`,
    ),
  ),
  ...(node.takes_tasks === undefined ? [] : [['takes tasks', node.takes_tasks ? 'yes' : noTasks] as const]),
  ['conditions', orNone(node.conditions.map((condition) => conditionLine(condition, nowMs)))],
  ...some(
    'approvals',
    node.approvals.map((approval) => `${approval.by}, ${moment(approval.at, nowMs)}`),
  ),
  ['hardware', orNone(hardwareLines(node.hardware))],
  ...some('reports', node.reported_hardware === undefined ? [] : hardwareLines(node.reported_hardware)),
  ...(node.facts === null ? [] : [['machine', machine(node.facts)] as const]),
  ...some('scraped at', node.scrape_address ? [node.scrape_address] : []),
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

const noTasks = 'no: it has no helper, or its agent.toml has no [tasks]'

const provisioningText = (said: NonNullable<NodeDetail['provisioning']>, nowMs: number): string =>
  `${said.state}${said.detail === null ? '' : `, ${said.detail}`}, since ${moment(said.since, nowMs)}, said ${said.by}`

const wireguardLines = (wireguard: NonNullable<NodeDetail['wireguard']>): string[] => [
  `key ${wireguard.public_key}`,
  `address ${wireguard.address}`,
  `endpoint ${wireguard.endpoint ?? 'none: it calls first'}`,
  `peers ${wireguard.group === null ? 'none' : `those of ${wireguard.group}`}`,
  `applied ${wireguard.applied_revision === null ? 'unknown' : `revision ${wireguard.applied_revision.slice(0, 12)}`}`,
]

const some = (name: string, lines: readonly string[]): Fact[] => (lines.length === 0 ? [] : [[name, lines]])
const orNone = (lines: readonly string[]): readonly string[] => (lines.length === 0 ? ['none'] : lines)
const hardwareLines = ({ macs, bmc_serial: serial }: NodeDetail['hardware']): string[] => [
  ...macs.map((mac) => `mac ${mac}`),
  ...(serial === null ? [] : [`bmc serial ${serial}`]),
]

const certificateLine = (certificate: NodeDetail['certificates'][number], nowMs: number): string =>
  `${certificate.slot}  serial ${certificate.serial}  ${untilText(certificate.not_after, nowMs)}`

const untilText = (notAfter: string, nowMs: number): string => {
  const notAfterMs = parseIsoTime(notAfter) ?? nowMs
  const until =
    notAfterMs > nowMs ? `expires in ${formatSpan(notAfterMs - nowMs)}` : `expired ${formatAgo(notAfterMs, nowMs)}`
  return `${until} (${notAfter})`
}

/** Files may be in place that the program could not be signalled to read. */
const standing = (why: string | null, isThere: boolean): string => {
  if (why === null) return 'is in place'
  return isThere ? 'is in place, and something FAILED' : 'is NOT in place'
}

export const programLines = ({ programs = [] }: Pick<NodeDetail, 'programs'>, nowMs: number): string[] =>
  programs.map(({ output, place, serial, serial_in_place: inPlace, not_after: notAfter, issuer, names, why }) =>
    [
      `${output} ${standing(why, inPlace !== null && inPlace === serial)}${place === null ? '' : `, ${place}`}`,
      ...(serial === null || notAfter === null ? [] : [`serial ${serial}`, untilText(notAfter, nowMs)]),
      ...(issuer === undefined || issuer === null || issuer === builtIn ? [] : [`issuer ${issuer}`]),
      ...(names.length === 0 ? [] : [`names ${names.join(', ')}`]),
      ...(why === null ? [] : [why]),
    ].join('  '),
  )

const conditionLine = (condition: NodeDetail['conditions'][number], nowMs: number): string => {
  const evidence = Object.entries(condition.evidence).map(([name, value]) => `${name}=${String(value)}`)
  return [`${condition.name}, since ${moment(condition.since, nowMs)}: ${condition.reason}`, ...evidence].join('  ')
}

const machine = (facts: NonNullable<NodeDetail['facts']>): string =>
  `${facts.cpu_cores} cores, ${gibibytes(facts.memory_bytes)} memory, ${gibibytes(facts.disk_bytes)} disk, ${facts.arch}`

const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(bytes < 100 * 2 ** 30 ? 1 : 0)} GiB`

/** What the agent of a node reported about itself. */
const evidenceLines = (evidence: NodeEvidence, nowMs: number): string[] => {
  if (evidence.reported_at === null) return ['nothing yet']
  const at = (time: string | null): string => (time === null ? 'never' : moment(time, nowMs))
  return [
    moment(evidence.reported_at, nowMs),
    `certificate until ${evidence.cert_not_after ?? 'unknown'}, identity from ${evidence.identity_source}`,
    `last exchange ${at(evidence.last_exchange)}`,
    `renewal: last tried ${at(evidence.last_renewal_attempt)}${failure(evidence.last_renewal_failure)}`,
    `recovery: last tried ${at(evidence.last_recovery_attempt)}${failure(evidence.last_recovery_failure)}`,
    ...rehearsal(evidence, at),
    `clock ${skew(evidence.clock_skew_ms ?? 0)}`,
    ...(evidence.endpoint_set === null
      ? []
      : [`endpoint set ${evidence.endpoint_set.id}, revision ${evidence.endpoint_set.revision}`]),
    ...connectionLines(evidence.connection ?? null),
    ...storage(evidence),
  ]
}

const connectionLines = (connection: NonNullable<NodeEvidence['connection']> | null): string[] => {
  if (connection === null) return []
  const { runtime, recovery, channel, plane_roots, recovery_roots, certificate_root: root } = connection
  const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))
  const roots = (prints: readonly string[]): string => list(prints.map((print) => `sha256:${print}`))
  return [
    `faces ${list(runtime)}${channel === null ? '' : `, connected to ${channel}`}; for recovery ${list(recovery)}`,
    `knows the plane by root ${roots(plane_roots)}; its recovery listener by ${roots(recovery_roots)}`,
    `its own certificate is under root ${root === null ? 'unknown' : `sha256:${root}`}`,
  ]
}

const failure = (last: NodeEvidence['last_renewal_failure']): string =>
  last === null ? '' : `; last failure ${last.at}: ${last.class} (${last.code}) ${last.text}`

const rehearsal = ({ last_rehearsal: last }: NodeEvidence, at: (time: string | null) => string): string[] => {
  if (last === null) return ['rehearsal: never']
  const where = last.outcome === 'failed' ? ` at ${last.step}: ${last.why}` : ''
  return [`rehearsal: ${last.outcome} ${at(last.at)}${where}`]
}

const skew = (ms: number): string =>
  ms === 0 ? 'right, within the tolerance' : `${Math.round(Math.abs(ms) / 1000)} s ${ms > 0 ? 'behind' : 'ahead'}`

const storage = ({ free_bytes: free, ...evidence }: NodeEvidence): string[] => [
  `identity ${writable(evidence.identity_writable)}, diagnostics ${writable(evidence.diagnostics_writable)}, reserve ${evidence.disk_reserve === true ? 'whole' : 'missing'}`,
  ...(free === null
    ? []
    : [
        `free: ${Object.entries(free)
          .map(([path, bytes]) => `${path} ${mebibytes(bytes)}`)
          .join(', ')}`,
      ]),
]

const writable = (is: boolean | null): string => (is === false ? 'cannot be written' : 'writable')
const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`

const repairLines = (repair: RepairView, nowMs: number): string[] => [
  `bundle ${repair.id}, made ${moment(repair.issued_at, nowMs)} by ${repair.by}: ${repair.reason}`,
  repair.used_at === null ? `not used yet, good until ${repair.expires_at}` : `used ${moment(repair.used_at, nowMs)}`,
  ...(repair.evidence === null
    ? []
    : [
        `evidence ${repair.evidence.passed ? 'has passed' : 'has not passed'} (${repair.evidence.at})`,
        ...repair.evidence.checks.map(({ name, ok, detail }) => `  ${ok ? 'ok' : 'NOT ok'}  ${name}: ${detail}`),
      ]),
]

type Overlay = NonNullable<NodeDetail['overlay']>

const vclusterText = ({ vcluster, vcluster_revision: revision }: NodeDetail): string =>
  vcluster === null ? 'none (maintenance mode)' : `${vcluster}${revision === null ? '' : `, revision ${revision}`}`

/** What is true of more than the state: a node that drains has no other reason. */
export const schedulingText = ({ state, reasons }: NodeDetail['scheduling']): string =>
  [state, ...reasons.filter((reason) => reason !== state)].join(', ')

/** Of an identity that was taken away, or is not there yet, the last report says nothing about any machine. */
const isGone = ({ membership }: NodeDetail): boolean => membership === 'revoked' || membership === 'registered'

/** A connected agent that does not report it is an older one, or is connected to an older replica. A node without a channel reports nothing. */
export const overlayLines = (node: NodeDetail): string[] => {
  const { overlay, vcluster, sessions } = node
  if (isGone(node)) return []
  if (overlay === null) {
    return vcluster === null || sessions.length === 0
      ? []
      : ['not known: nothing was said of it; an agent or a plane of the release before?']
  }
  return [
    ...(sessions.length === 0 ? ['what it said last, while it was connected:'] : []),
    overlay.applied
      ? `applied, configuration ${overlay.config_revision}`
      : `not applied: ${overlay.detail ?? 'its agent does not say why'}`,
    ...overlay.services.flatMap(serviceLines),
    ...(node.not_reported ?? []).map((what) => `${what}: not run yet${upgradeWords(node)}`),
  ]
}

/** An agent of 0.3 is not sent what it does not know, and never says anything of it. */
const upgradeWords = ({ agent_version: version }: NodeDetail): string =>
  version === null || /^0\.[0-3]\./.test(version) ? '; an agent of 0.3 does not know how, and needs an upgrade' : ''

const serviceLines = (service: Overlay['services'][number]): string[] => {
  const { name, state, restarts, error, output = [], unapplied = [] } = service
  const often = restarts === 0 ? '' : `, restarted ${restarts === 1 ? 'once' : `${restarts} times`}`
  return [
    `service ${name} ${state}${often}${error === undefined ? '' : `: ${error}`}`,
    ...output.map((line) => `  | ${line}`),
    ...(unapplied.length === 0 ? [] : [`  not applied here: ${unapplied.join(', ')}`]),
  ]
}

const checkWords = { passed: 'passes', failed: 'FAILS', not_run: 'not made' } as const

const checkLines = (node: NodeDetail, nowMs: number): string[] =>
  isGone(node)
    ? []
    : (node.overlay?.checks ?? []).map(
        ({ name, state, line, since }) => `${name} ${checkWords[state]}, since ${moment(since, nowMs)}: ${line}`,
      )

export const driftLines = (node: NodeDetail): string[] => (isGone(node) ? [] : (node.overlay?.drift ?? []))

const runBy: Readonly<Record<NonNullable<NodeDetail['capabilities']>['services'], string>> = {
  helper: 'by its helper, each as a user that the host lists',
  systemd: "by systemd, as its agent's user and without its key",
  supervised: 'as children of its agent: they share its user and can read its key',
}

const capabilityLines = (capabilities: NodeDetail['capabilities']): string[] => {
  if (capabilities === null) return []
  const { kernel, services, wireguard, accelerators } = capabilities
  return [
    `kernel ${kernel}, WireGuard ${wireguard}, services ${runBy[services]}`,
    ...accelerators.map(({ device, count }) => `${count} x ${device}`),
  ]
}

/** The history of a node: its state, what led there, and what an operator could do. */
export const nodeExplain = async (cli: Cli, options: GlobalOptions, id: string): Promise<void> => {
  const explanation = await connect(cli, options).ask(nodeApi.explain, { params: { id }, about: { ID: id } })
  printer(cli, options).answer(explanation, () => explanationLines(explanation).map((line) => cli.hints.asCalled(line)))
}

const explanationLines = (explanation: NodeExplanation): string[] => [
  ...explanation.sentences.map(printable),
  '',
  'What happened:',
  ...chainLines(explanation.chain),
  `  its agent last reported ${explanation.last_report_at ?? 'never'}`,
  ...(explanation.next.length === 0
    ? []
    : ['', 'What you could do:', ...explanation.next.map((command) => `  ${printable(command)}`)]),
]

/** The id of a story is said once, where it begins. */
const chainLines = (chain: NodeExplanation['chain']): string[] => {
  if (chain.length === 0) return ['  nothing is on record']
  let story: string | null = null
  return chain.map(({ at, what, who, correlation }) => {
    const begins = correlation !== null && correlation !== story
    story = correlation
    return printable(`  ${at}  ${what} (${who})${begins ? `  [${correlation}]` : ''}`)
  })
}
