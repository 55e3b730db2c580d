// The eleven figures of 003 and those of programs and tasks, as Prometheus reads them, at GET /metrics for this machine. Written by hand: a library would be
// a third of the agent's memory.

import { boundServer } from '#platform/bounded-server.ts'
import { createHttpServer, listenTcp, stopServer, type HttpRequest, type HttpServer } from '#platform/http-server.ts'
import { failureClasses } from '#domain/core/node.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { ByClass, Figures } from './figures.ts'
import type { StatusFile } from './status-file.ts'

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]
type Metric = {
  readonly name: string
  readonly type: 'gauge' | 'counter'
  readonly labels: readonly string[]
  readonly help: string
  readonly samples: (facts: MetricFacts) => readonly Sample[]
}

/** What is measured when it is asked for. */
export type MetricFacts = {
  readonly nowMs: number
  /** Null: there is no certificate. */
  readonly notAfterMs: number | null
  readonly figures: Figures
  readonly mounts: readonly { readonly mount: string; readonly availableBytes: number }[]
  readonly outputs: NonNullable<StatusFile['outputs']>
  readonly tasks: NonNullable<StatusFile['tasks']>
}

/** What the metrics need of an agent. */
type Measured = {
  readonly clock: Pick<AgentParts['clock'], 'nowMs'>
  readonly keeper: Pick<AgentParts['keeper'], 'credentials'>
  readonly record: Pick<AgentParts['record'], 'now'>
  readonly storage: Pick<AgentParts['storage'], 'mounts'>
}

const metricFacts = ({ clock, keeper, record, storage }: Measured): MetricFacts => ({
  nowMs: clock.nowMs(),
  notAfterMs: keeper.credentials().identity?.current.notAfterMs ?? null,
  figures: record.now().figures,
  mounts: storage.mounts(),
  outputs: record.now().status.outputs ?? [],
  tasks: record.now().status.tasks ?? [],
})

export const metricPrefix = 'muster_node_agent_'

/** Pure. Text format 0.0.4. */
export const metricsText = (facts: MetricFacts): string =>
  agentMetrics
    .flatMap(({ name, help, type, samples }) => [
      `# HELP ${metricPrefix}${name} ${help}`,
      `# TYPE ${metricPrefix}${name} ${type}`,
      ...samples(facts).map(([labels, value]) => `${metricPrefix}${name}${labelText(labels)} ${value}`),
    ])
    .join('\n') + '\n'

const one = (value: number): readonly Sample[] => [[{}, value]]

/** Zeros too: a rate over something that was never there is no rate. */
const byClass = (counts: ByClass): readonly Sample[] =>
  failureClasses.map((reason): Sample => [{ reason }, counts[reason] ?? 0])

export const agentMetrics: readonly Metric[] = [
  {
    name: 'cert_expiry_seconds',
    type: 'gauge',
    labels: [],
    help: 'Seconds until the certificate expires; below zero since it has.',
    samples: ({ notAfterMs, nowMs }) => (notAfterMs === null ? [] : one((notAfterMs - nowMs) / 1000)),
  },
  {
    name: 'cert_renewal_attempts_total',
    type: 'counter',
    labels: [],
    help: 'Renewals that were tried.',
    samples: ({ figures }) => one(figures.renewal.attempts),
  },
  {
    name: 'cert_renewal_failures_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Renewals that failed, by class.',
    samples: ({ figures }) => byClass(figures.renewal.failures),
  },
  {
    name: 'recovery_enrollment_attempts_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Recoveries that were tried, by what made them necessary.',
    samples: ({ figures }) => byClass(figures.recovery.attempts),
  },
  {
    name: 'recovery_enrollment_success_total',
    type: 'counter',
    labels: [],
    help: 'Recoveries that gave a new identity.',
    samples: ({ figures }) => one(figures.recovery.successes),
  },
  {
    name: 'recovery_enrollment_failures_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Recoveries that failed, by class.',
    samples: ({ figures }) => byClass(figures.recovery.failures),
  },
  {
    name: 'last_successful_mtls_task_poll_timestamp',
    type: 'gauge',
    labels: [],
    help: 'When the plane last answered an authenticated call, in seconds since 1970; zero for never.',
    samples: ({ figures }) => one((figures.lastExchangeMs ?? 0) / 1000),
  },
  {
    name: 'endpoint_profile_drift_total',
    type: 'counter',
    labels: [],
    help: 'Times the plane was reached elsewhere than where it was said to be.',
    samples: ({ figures }) => one(figures.driftTotal),
  },
  {
    name: 'local_diagnostic_write_failures_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Writes of the local record that failed, by errno.',
    samples: ({ figures }) =>
      Object.entries({ ENOSPC: 0, EROFS: 0, ...figures.diagnosticWriteFailures }).map(([reason, count]) => [
        { reason },
        count,
      ]),
  },
  {
    name: 'node_filesystem_available_bytes',
    type: 'gauge',
    labels: ['mount'],
    help: 'Bytes the agent may still write, by mount point.',
    samples: ({ mounts }) => mounts.map(({ mount, availableBytes }) => [{ mount }, availableBytes]),
  },
  {
    name: 'observability_dropped_records_total',
    type: 'counter',
    labels: ['source', 'reason'],
    help: 'Records that were dropped, by source and reason.',
    samples: ({ figures }) => droppedOf(figures),
  },
  {
    name: 'program_cert_expiry_seconds',
    type: 'gauge',
    labels: ['output'],
    help: 'Seconds until the leaf of a program expires, by output; below zero since it has.',
    samples: ({ outputs, nowMs }) =>
      outputs.flatMap(({ name: output, not_after }) =>
        not_after === null ? [] : [[{ output }, ((parseIsoTime(not_after) ?? nowMs) - nowMs) / 1000]],
      ),
  },
  {
    name: 'program_output_in_place',
    type: 'gauge',
    labels: ['output'],
    help: 'Whether the newest leaf and lists of a program are in place and were read by it, by output.',
    samples: ({ outputs }) =>
      outputs.map(({ name: output, serial, failure }) => [{ output }, serial !== null && failure === null ? 1 : 0]),
  },
  {
    name: 'tasks',
    type: 'gauge',
    labels: ['state'],
    help: 'Tasks under way here, by state; ended: their results are on their way to the plane.',
    samples: ({ tasks }) =>
      (['received', 'running', 'ended'] as const).map((state) => [
        { state },
        tasks.filter((task) => task.state === state).length,
      ]),
  },
  {
    name: 'task_events_total',
    type: 'counter',
    labels: ['event'],
    help: 'Tasks that were begun, and results that the plane has, by how they ended.',
    samples: ({ figures }) => Object.entries(figures.tasks).map(([event, count]) => [{ event }, count]),
  },
]

const pressureSources = ['log', 'record', 'status'] as const

const droppedOf = ({ dropped }: Figures): readonly Sample[] => [
  ...pressureSources
    .filter((source) => !dropped.some((one) => one.source === source && one.reason === 'disk_pressure'))
    .map((source): Sample => [{ source, reason: 'disk_pressure' }, 0]),
  ...dropped.map(({ source, reason, count }): Sample => [{ source, reason }, count]),
]

const labelText = (labels: Sample[0]): string => {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return parts.length === 0 ? '' : `{${parts.join(',')}}`
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

export type ShownMetrics = { readonly port: number | null; close(): Promise<void> }

type Showing = Measured &
  Pick<AgentParts, 'timers' | 'log'> & {
    readonly config: Pick<AgentParts['config'], 'metricsListen'>
  }

const mostConnections = 16
const closeWithinMs = 500
const unreadable = (): string => 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'

/** A port that is taken is said, and is no reason not to run. */
export const showMetrics = async (agent: Showing): Promise<ShownMetrics> => {
  const { metricsListen } = agent.config
  if (metricsListen === null) return { port: null, close: () => Promise.resolve() }
  const server = metricsServer(agent)
  try {
    const port = await listenTcp(server, metricsListen.host, metricsListen.port)
    agent.log.info({ host: metricsListen.host, port }, 'metrics are served at /metrics')
    return { port, close: () => stopServer(server, agent.timers, closeWithinMs) }
  } catch (error) {
    agent.log.warn({ err: error, code: 'metrics_port' }, 'metrics are not served: cannot listen on the address')
    return { port: null, close: () => Promise.resolve() }
  }
}

/** Asked for by any other name: a page in a browser of this machine, whose name was made to lead here. */
const ownName = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)(?::\d{1,5})?$/i

const statusOf = ({ method, url, headers }: HttpRequest): number => {
  if (!ownName.test(headers.host ?? 'localhost')) return 421
  if (url !== '/metrics') return 404
  return method === 'GET' || method === 'HEAD' ? 200 : 405
}

const metricsServer = (agent: Showing): HttpServer => {
  const server = createHttpServer((request, response) => {
    const status = statusOf(request)
    response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    response.end(status === 200 ? metricsText(metricFacts(agent)) : '')
  })
  boundServer(server, {
    connections: mostConnections,
    perSource: null,
    perCaller: null,
    timers: agent.timers,
    onCut: (reason, source) => agent.log.debug({ code: reason, from: source }, 'a connection for metrics was closed'),
    unreadable,
  })
  return server
}
