// The metrics of a plane. Counters follow the feed; gauges are read when they are scraped. No label has values that a caller could
// choose.

import { collectDefaultMetrics, Counter, Registry } from 'prom-client'
import { refusals, type RefusalCode } from '#domain/core/refusal-table.ts'
import { headerTroubles, type HeaderTrouble } from '#platform/proxied-server.ts'
import { cutReasons, type CutReason } from '#platform/connections.ts'
import { sendOutcomes, type SendOutcome } from '#platform/send-bytes.ts'
import { deliveryOutcomes, type DeliveryOutcome } from '#plane/webhook/deliver-alerts.ts'
import { counted, countCommits } from './count-commits.ts'
import { openAgentMetrics } from './agent-gauges.ts'
import { declaredIn, type DeclaredMetric } from './declared-metrics.ts'
import { openFleetCensus } from './fleet-census.ts'
import { openFleetGauges } from './fleet-gauges.ts'
import { openGroups } from './group-labels.ts'
import { measureStatus, type StatusMeasures } from './measure-status.ts'
import { measureStore } from './measure-store.ts'
import { openTaskGauges } from './task-gauges.ts'
import { openNodeMetrics, type NodeMetrics } from './node-metrics.ts'
import { openPlaneInfo, openReplicaGauges, openPlaneGauges, type MeasuredParts } from './plane-gauges.ts'
import type { Core } from '#plane/core/core.ts'
import type { AgentFigures } from '#plane/node/agent-figures.ts'
import { recoveryApi } from '#wire/recovery/recovery-api.ts'

const listenerNames = ['node', 'recovery', 'operator', 'status'] as const
export type ListenerName = (typeof listenerNames)[number]

export type Metrics = {
  /** Every refusal on any listener; `path` is the route's, never the caller's text. */
  refused(code: RefusalCode, path?: string | null): void
  rehearsed(outcome: 'passed' | 'failed'): void
  reported(): void
  /** A connection of a load balancer that was closed for want of a PROXY header. */
  unproxied(trouble: HeaderTrouble): void
  /** A connection that was closed because it was beyond its bounds. */
  cut(listener: ListenerName, reason: CutReason): void
  /** A request whose caller hung up before it was complete. */
  aborted(listener: ListenerName): void
  delivered(outcome: DeliveryOutcome): void
  /** A download of the agent has ended. */
  agentSent(outcome: SendOutcome): void
  readonly status: StatusMeasures
  /** What agents report, for sums over them. */
  readonly agents: AgentFigures
  readonly nodes: NodeMetrics
  /** Gauges of the parts that are opened after the first of them that counts something. Called once. */
  measure(parts: MeasuredParts): void
  /** In the text format of Prometheus. */
  text(): Promise<string>
  /** What `text` can have, for docs/METRICS.md. */
  declared(): readonly DeclaredMetric[]
  close(): void
}

/**
 * Of the process, once for all planes it has had: what measures them cannot be stopped, and would hold on to the plane that it was
 * begun for.
 */
let processMetrics: Registry | null = null

const openProcessMetrics = (): Registry => {
  if (processMetrics !== null) return processMetrics
  processMetrics = new Registry()
  collectDefaultMetrics({ register: processMetrics })
  return processMetrics
}

/** `nodeMetrics`: metrics of single nodes are shown. */
export type MetricsOptions = { readonly domain: string; readonly nodeMetrics: boolean }

export const openMetrics = (core: Omit<Core, 'random' | 'log'>, options: MetricsOptions): Metrics => {
  const ofProcess = openProcessMetrics()
  const ofDomain = new Registry()
  const ofReplica = new Registry()
  const registers = [ofReplica]
  const both = { ofDomain: [ofDomain], ofReplica: registers }
  openPlaneInfo(options.domain, registers)
  const groups = openGroups()
  const agents = openAgentMetrics(core, groups, registers)
  openFleetGauges(core, openFleetCensus(core, groups, agents.forget), [ofDomain])
  openTaskGauges(core, [ofDomain])
  measureStore(core.store, registers)
  openReplicaGauges(core.store.replicas, both)
  const close = countCommits(core.feed, registers)
  return {
    ...openCounters(registers),
    status: measureStatus(registers),
    agents: agents.figures,
    nodes: openNodeMetrics(core, agents.figures, options.nodeMetrics),
    measure: (parts) => openPlaneGauges(parts, both),
    text: () => Registry.merge([ofProcess, ofDomain, ofReplica]).metrics(),
    declared: () => [
      ...declaredIn(ofDomain, 'domain'),
      ...declaredIn(ofReplica, 'replica'),
      ...declaredIn(ofProcess, 'process'),
    ],
    close,
  }
}

/** What is counted where it happens. */
const openCounters = (
  registers: Registry[],
): Omit<Metrics, 'measure' | 'text' | 'declared' | 'close' | 'status' | 'agents' | 'nodes'> => {
  const labelled = <T extends string>(name: string, help: string, label: T) =>
    new Counter({ name, help, labelNames: [label] as const, registers })
  const refused = labelled('muster_refusals_total', 'Calls refused, by code', 'code')
  const rehearsals = labelled('muster_rehearsals_total', 'Recovery rehearsals, by what became of them', 'outcome')
  const deliveries = labelled('muster_webhook_deliveries_total', 'Attempts to tell the webhook, by outcome', 'outcome')
  const refusedRecoveries = new Counter({
    name: 'muster_recoveries_refused_total',
    help: 'Recoveries asked for and refused',
    registers,
  })
  const unproxied = labelled(
    'muster_proxy_headers_refused_total',
    'Connections of load balancers closed for want of a PROXY header, by what was wrong',
    'trouble',
  )
  const cuts = new Counter({
    name: 'muster_connections_cut_total',
    help: 'Connections closed because they were beyond their bounds, by listener and reason',
    labelNames: ['listener', 'reason'] as const,
    registers,
  })
  const aborted = labelled(
    'muster_requests_aborted_total',
    'Requests whose caller hung up before they were complete, by listener',
    'listener',
  )
  const downloads = labelled('muster_agent_downloads_total', 'Downloads of the agent, by how they ended', 'outcome')
  const reports = new Counter({ name: 'muster_reports_total', help: 'Reports of agents taken', registers })
  for (const code of Object.keys(refusals)) counted(refused, { code })
  for (const trouble of headerTroubles) counted(unproxied, { trouble })
  for (const listener of listenerNames) {
    counted(aborted, { listener })
    for (const reason of cutReasons) counted(cuts, { listener, reason })
  }
  for (const outcome of deliveryOutcomes) counted(deliveries, { outcome })
  for (const outcome of sendOutcomes) counted(downloads, { outcome })
  for (const outcome of ['passed', 'failed', 'refused']) counted(rehearsals, { outcome })
  return {
    refused(code, path = null) {
      refused.inc({ code })
      if (path === recoveryApi.recover.path) refusedRecoveries.inc()
      if (path === recoveryApi.rehearse.path) rehearsals.inc({ outcome: 'refused' })
    },
    rehearsed: (outcome) => rehearsals.inc({ outcome }),
    reported: () => reports.inc(),
    unproxied: (trouble) => unproxied.inc({ trouble }),
    cut: (listener, reason) => cuts.inc({ listener, reason }),
    aborted: (listener) => aborted.inc({ listener }),
    delivered: (outcome) => deliveries.inc({ outcome }),
    agentSent: (outcome) => downloads.inc({ outcome }),
  }
}
