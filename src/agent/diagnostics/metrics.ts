// The eleven figures of 003, as Prometheus reads them. Written by hand: a library would be a third of the agent's memory.

import { failureClasses } from '#domain/recovery/failure-class.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { ByClass, VitalSigns } from '#agent/core/vitals.ts'

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number]
type Metric = {
  readonly name: string
  readonly help: string
  readonly type: 'gauge' | 'counter'
  readonly samples: readonly Sample[]
}

/** What is measured when it is asked for. */
export type MetricFacts = {
  readonly nowMs: number
  /** Null: there is no certificate. */
  readonly notAfterMs: number | null
  readonly signs: VitalSigns
  readonly mounts: readonly { readonly mount: string; readonly availableBytes: number }[]
}

/** What the metrics need of an agent. */
export type Measured = {
  readonly clock: Pick<AgentParts['clock'], 'nowMs'>
  readonly keeper: Pick<AgentParts['keeper'], 'credentials'>
  readonly vitals: Pick<AgentParts['vitals'], 'signs'>
  readonly storage: Pick<AgentParts['storage'], 'mounts'>
}

export const metricFacts = ({ clock, keeper, vitals, storage }: Measured): MetricFacts => ({
  nowMs: clock.nowMs(),
  notAfterMs: keeper.credentials().identity?.current.notAfterMs ?? null,
  signs: vitals.signs(),
  mounts: storage.mounts(),
})

export const metricPrefix = 'muster_node_agent_'

/** Pure. Text format 0.0.4. */
export const metricsText = (facts: MetricFacts): string =>
  metricsOf(facts)
    .flatMap(({ name, help, type, samples }) => [
      `# HELP ${metricPrefix}${name} ${help}`,
      `# TYPE ${metricPrefix}${name} ${type}`,
      ...samples.map(([labels, value]) => `${metricPrefix}${name}${labelText(labels)} ${value}`),
    ])
    .join('\n') + '\n'

const metricsOf = ({ nowMs, notAfterMs, signs, mounts }: MetricFacts): readonly Metric[] => [
  gauge(
    'cert_expiry_seconds',
    'Seconds until the certificate expires; below zero since it has.',
    notAfterMs === null ? [] : [one((notAfterMs - nowMs) / 1000)],
  ),
  counter('cert_renewal_attempts_total', 'Renewals that were tried.', [one(signs.renewal.attempts)]),
  counter('cert_renewal_failures_total', 'Renewals that failed, by class.', byClass(signs.renewal.failures)),
  counter(
    'recovery_enrollment_attempts_total',
    'Recoveries that were tried, by what made them necessary.',
    byClass(signs.recovery.attempts),
  ),
  counter('recovery_enrollment_success_total', 'Recoveries that gave a new identity.', [one(signs.recovery.successes)]),
  counter('recovery_enrollment_failures_total', 'Recoveries that failed, by class.', byClass(signs.recovery.failures)),
  gauge(
    'last_successful_mtls_task_poll_timestamp',
    'When the plane last answered an authenticated call, in seconds since 1970; zero for never.',
    [one((signs.lastExchangeMs ?? 0) / 1000)],
  ),
  counter('endpoint_profile_drift_total', 'Times the plane was reached elsewhere than where it was said to be.', [
    one(signs.driftTotal),
  ]),
  counter(
    'local_diagnostic_write_failures_total',
    'Writes of the local record that failed, by errno.',
    Object.entries({ ENOSPC: 0, EROFS: 0, ...signs.diagnosticWriteFailures }).map(([reason, count]) => [
      { reason },
      count,
    ]),
  ),
  gauge(
    'node_filesystem_available_bytes',
    'Bytes the agent may still write, by mount point.',
    mounts.map(({ mount, availableBytes }) => [{ mount }, availableBytes]),
  ),
  counter('observability_dropped_records_total', 'Records that were dropped, by source and reason.', droppedOf(signs)),
]

const gauge = (name: string, help: string, samples: readonly Sample[]): Metric => ({
  name,
  help,
  type: 'gauge',
  samples,
})
const counter = (name: string, help: string, samples: readonly Sample[]): Metric => ({
  name,
  help,
  type: 'counter',
  samples,
})
const one = (value: number): Sample => [{}, value]

/** Zeros too: a rate over something that was never there is no rate. */
const byClass = (counts: ByClass): readonly Sample[] =>
  failureClasses.map((reason): Sample => [{ reason }, counts[reason] ?? 0])

const pressureSources = ['log', 'record', 'status'] as const

const droppedOf = ({ dropped }: VitalSigns): readonly Sample[] => [
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
