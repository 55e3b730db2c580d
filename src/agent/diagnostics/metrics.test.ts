import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentMetrics, metricPrefix, metricsText, type MetricFacts } from './metrics.ts'
import { classified, trouble } from '#agent/core/trouble.ts'
import { counted, noFigures, type Counted } from './figures.ts'

const nowMs = Date.UTC(2026, 10, 15)

const facts = (change: Partial<MetricFacts> = {}): MetricFacts => ({
  nowMs,
  notAfterMs: nowMs + 3_600_000,
  figures: noFigures,
  mounts: [{ mount: '/', availableBytes: 1024 }],
  outputs: [],
  tasks: [],
  ...change,
})

const value = (text: string, series: string): string | null =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${metricPrefix}${series} `))
    ?.split(' ')[1] ?? null

test('the eleven metrics of 003 and those of programs and tasks are there from the start, under the prefix of Muster', () => {
  const names = [...metricsText(facts()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`)
  assert.deepEqual(names, [
    'muster_node_agent_cert_expiry_seconds gauge',
    'muster_node_agent_cert_renewal_attempts_total counter',
    'muster_node_agent_cert_renewal_failures_total counter',
    'muster_node_agent_recovery_enrollment_attempts_total counter',
    'muster_node_agent_recovery_enrollment_success_total counter',
    'muster_node_agent_recovery_enrollment_failures_total counter',
    'muster_node_agent_last_successful_mtls_task_poll_timestamp gauge',
    'muster_node_agent_endpoint_profile_drift_total counter',
    'muster_node_agent_local_diagnostic_write_failures_total counter',
    'muster_node_agent_node_filesystem_available_bytes gauge',
    'muster_node_agent_observability_dropped_records_total counter',
    'muster_node_agent_program_cert_expiry_seconds gauge',
    'muster_node_agent_program_output_in_place gauge',
    'muster_node_agent_tasks gauge',
    'muster_node_agent_task_events_total counter',
  ])
})

test('what the agent counts is what the metrics say', () => {
  const full = classified(trouble('disk_full', 'Full.', 'make room'), 'disk_full')
  const seen: readonly Counted[] = [
    { kind: 'renewal-tried' },
    { kind: 'renewal-tried' },
    { kind: 'renewal-failed', trouble: full },
    { kind: 'recovery-tried', because: 'cert_expired' },
    { kind: 'recovery-failed', trouble: full },
    { kind: 'recovered' },
    { kind: 'exchanged' },
    { kind: 'drifted' },
    { kind: 'task', event: 'unknown' },
    { kind: 'diagnostic-write-failed', errno: 'EROFS' },
    { kind: 'dropped', source: 'log', reason: 'disk_pressure', count: 3 },
  ]
  const figures = seen.reduce((so, what) => counted(so, what, nowMs), noFigures)
  const text = metricsText(facts({ figures }))
  assert.equal(value(text, 'cert_expiry_seconds'), '3600')
  assert.equal(value(text, 'cert_renewal_attempts_total'), '2')
  assert.equal(value(text, 'task_events_total{event="unknown"}'), '1')
  assert.equal(value(text, 'tasks{state="running"}'), '0')
  assert.equal(value(text, 'cert_renewal_failures_total{reason="disk_full"}'), '1')
  assert.equal(value(text, 'cert_renewal_failures_total{reason="clock_skew"}'), '0')
  assert.equal(value(text, 'recovery_enrollment_attempts_total{reason="cert_expired"}'), '1')
  assert.equal(value(text, 'recovery_enrollment_success_total'), '1')
  assert.equal(value(text, 'recovery_enrollment_failures_total{reason="disk_full"}'), '1')
  assert.equal(value(text, 'last_successful_mtls_task_poll_timestamp'), String(nowMs / 1000))
  assert.equal(value(text, 'endpoint_profile_drift_total'), '1')
  assert.equal(value(text, 'local_diagnostic_write_failures_total{reason="EROFS"}'), '1')
  assert.equal(value(text, 'node_filesystem_available_bytes{mount="/"}'), '1024')
  assert.equal(value(text, 'observability_dropped_records_total{source="log",reason="disk_pressure"}'), '3')
  assert.equal(value(text, 'observability_dropped_records_total{source="record",reason="disk_pressure"}'), '0')
})

test('a certificate that is gone is negative, and one that never was is not there', () => {
  assert.equal(value(metricsText(facts({ notAfterMs: nowMs - 60_000 })), 'cert_expiry_seconds'), '-60')
  assert.equal(value(metricsText(facts({ notAfterMs: null })), 'cert_expiry_seconds'), null)
})

test('an output that fails or has no leaf is not in place, and its leaf has the seconds that are left', () => {
  const output = {
    name: 'web',
    place: '/run/outputs/web',
    serial: 'a1',
    not_after: new Date(nowMs + 60_000).toISOString(),
    renew_at: null,
    lists_until: null,
    key_type: 'p256',
    names: [],
    reload: null,
    failure: null,
  }
  const outputs = [
    output,
    { ...output, name: 'db', failure: 'x' },
    { ...output, name: 'new', serial: null, not_after: null },
  ]
  const text = metricsText(facts({ outputs }))
  assert.equal(value(text, 'program_cert_expiry_seconds{output="web"}'), '60')
  assert.equal(value(text, 'program_cert_expiry_seconds{output="new"}'), null)
  for (const [name, expected] of [
    ['web', '1'],
    ['db', '0'],
    ['new', '0'],
  ] as const)
    assert.equal(value(text, `program_output_in_place{output="${name}"}`), expected)
})

test('every metric has the labels that it declares', () => {
  const full = facts({
    outputs: [
      {
        ...{ name: 'web', place: '/run/web', serial: 'a1', not_after: new Date(nowMs).toISOString(), renew_at: null },
        ...{ lists_until: null, key_type: 'p256', names: [], reload: null, failure: null },
      },
    ],
  })
  for (const { name, labels, samples } of agentMetrics) {
    const shown = samples(full).map(([given]) => Object.keys(given))
    assert.ok(shown.length > 0, name)
    for (const given of shown) assert.deepEqual(given, labels, name)
  }
})
