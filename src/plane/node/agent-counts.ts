// What agents count about themselves, as a closed list of series: a node chooses no label. Between two reports of one process of an
// agent only the growth matters, so that sums over nodes and replicas are counters of Prometheus.

import { failureClasses } from '#domain/core/node.ts'
import type { ReportBody } from '#wire/node/report.ts'

/** Named as the agent's own metrics are (agent/diagnostics/metrics.ts). */
export const agentCounters = {
  cert_renewal_attempts_total: { help: 'Renewals that agents tried', labels: [] },
  cert_renewal_failures_total: { help: 'Renewals of agents that failed, by class', labels: ['reason'] },
  recovery_enrollment_attempts_total: {
    help: 'Recoveries that agents tried, by what made them necessary',
    labels: ['reason'],
  },
  recovery_enrollment_success_total: { help: 'Recoveries of agents that gave a new identity', labels: [] },
  recovery_enrollment_failures_total: { help: 'Recoveries of agents that failed, by class', labels: ['reason'] },
  endpoint_profile_drift_total: {
    help: 'Times an agent reached the plane elsewhere than at the address it was given',
    labels: [],
  },
  local_diagnostic_write_failures_total: {
    help: 'Writes of the local record of agents that failed, by errno',
    labels: ['reason'],
  },
  observability_dropped_records_total: {
    help: 'Records that agents dropped, by source and reason',
    labels: ['source', 'reason'],
  },
} as const satisfies Readonly<
  Record<string, { readonly help: string; readonly labels: readonly ('reason' | 'source')[] }>
>
export type AgentCounter = keyof typeof agentCounters

export type AgentSeries = { readonly counter: AgentCounter; readonly labels: Readonly<Record<string, string>> }

const other = 'other'
const errnos = ['ENOSPC', 'EROFS', 'EIO', 'EDQUOT', 'EACCES', other] as const
const dropped = [
  ['log', 'disk_pressure'],
  ['log', 'too_many'],
  ['record', 'disk_pressure'],
  ['status', 'disk_pressure'],
  ['status', 'write_failed'],
  ['reports', 'no_channel'],
  ['reports', 'plane_behind'],
  [other, other],
] as const

const byClass = (counter: AgentCounter): readonly AgentSeries[] =>
  failureClasses.map((reason) => ({ counter, labels: { reason } }))

export const agentSeries: readonly AgentSeries[] = [
  { counter: 'cert_renewal_attempts_total', labels: {} },
  ...byClass('cert_renewal_failures_total'),
  ...byClass('recovery_enrollment_attempts_total'),
  { counter: 'recovery_enrollment_success_total', labels: {} },
  ...byClass('recovery_enrollment_failures_total'),
  { counter: 'endpoint_profile_drift_total', labels: {} },
  ...errnos.map((reason) => ({ counter: 'local_diagnostic_write_failures_total', labels: { reason } }) as const),
  ...dropped.map(
    ([source, reason]) => ({ counter: 'observability_dropped_records_total', labels: { source, reason } }) as const,
  ),
]

const keyOf = (counter: AgentCounter, ...labels: readonly string[]): string => [counter, ...labels].join(' ')
const places: ReadonlyMap<string, number> = new Map(
  agentSeries.map(({ counter, labels }, place) => [keyOf(counter, ...Object.values(labels)), place]),
)

/** Pairs of a place in `agentSeries` and a count. Zeros are left out: most counts are 0, and there are many nodes. */
export type Counts = readonly number[]

export const noCounts: Counts = []

export const countsOf = ({ renewal, recovery, endpoint_set, storage }: ReportBody): Counts => {
  const found = new Map<number, number>()
  const add = (count: number, counter: AgentCounter, ...labels: readonly string[]): void => {
    // First of all: most are 0, and agents report every minute.
    if (count === 0) return
    const place = places.get(keyOf(counter, ...labels)) ?? places.get(keyOf(counter, ...labels.map(() => other)))
    if (place !== undefined) found.set(place, (found.get(place) ?? 0) + count)
  }
  add(renewal.attempts, 'cert_renewal_attempts_total')
  add(recovery.successes, 'recovery_enrollment_success_total')
  add(endpoint_set.drift_total, 'endpoint_profile_drift_total')
  for (const name of failureClasses) {
    add(renewal.failures[name] ?? 0, 'cert_renewal_failures_total', name)
    add(recovery.attempts[name] ?? 0, 'recovery_enrollment_attempts_total', name)
    add(recovery.failures[name] ?? 0, 'recovery_enrollment_failures_total', name)
  }
  for (const [errno, count] of Object.entries(storage.diagnostic_write_failures))
    add(count, 'local_diagnostic_write_failures_total', errno)
  for (const { source, reason, count } of storage.dropped_records)
    add(count, 'observability_dropped_records_total', source, reason)
  return [...found].flat()
}

/**
 * A node that reports an absurd count must not drown the others in a sum. An agent tries at most every few seconds and reports once a
 * minute; what it tried during a longer outage is counted up to here.
 */
const mostGrowth = 100
/** Of records and of writes of them there may be many in a second. */
const mostRecordGrowth = 10_000

const mostOf = (counter: AgentCounter | undefined): number => {
  const isOfRecords =
    counter === 'observability_dropped_records_total' || counter === 'local_diagnostic_write_failures_total'
  return isOfRecords ? mostRecordGrowth : mostGrowth
}

/** What was counted since. A count that is smaller than before is that of a process that lies, and adds nothing. */
export const growthSince = (before: Counts, now: Counts): Counts => {
  const grown: number[] = []
  let recoveriesTried = 0
  for (const [place, count] of pairsOf(now)) {
    const at = before.findIndex((value, index) => index % 2 === 0 && value === place)
    const counter = agentSeries[place]?.counter
    const growth = Math.min(count - (at < 0 ? 0 : (before[at + 1] ?? 0)), mostOf(counter))
    if (growth <= 0) continue
    grown.push(place, growth)
    if (counter === 'recovery_enrollment_attempts_total') recoveriesTried += growth
  }
  return withSuccessesUpTo(recoveriesTried, grown)
}

/**
 * Recoveries that succeeded without being tried would hide, in a sum, those of other nodes that fail. Both are in one report: an agent
 * that recovers has no channel to report over. Renewals that succeed are not counted.
 */
const withSuccessesUpTo = (tried: number, grown: Counts): Counts =>
  [...pairsOf(grown)].flatMap(([place, growth]) => {
    if (agentSeries[place]?.counter !== 'recovery_enrollment_success_total') return [place, growth]
    return tried === 0 ? [] : [place, Math.min(growth, tried)]
  })

export function* pairsOf(counts: Counts): Generator<readonly [place: number, count: number], void, void> {
  for (let at = 0; at + 1 < counts.length; at += 2) yield [counts[at] ?? 0, counts[at + 1] ?? 0]
}
