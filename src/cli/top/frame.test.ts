import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plain } from '#cli/kit/print.ts'
import { ratesOf, type FleetView } from './fleet-view.ts'
import { renderFrame } from './frame.ts'

const nowMs = new Date(2026, 10, 17, 12, 3, 5).getTime()
const alert = {
  id: '1',
  node: null,
  state: 'open',
  acknowledged_by: null,
  acknowledged_at: null,
  note: null,
  resolved_at: null,
} as const
const view: FleetView = {
  domain: 'muster.local',
  states: { registered: 2, active: 1200, revoked: 9, inactive: 0 },
  connected: 1190,
  recoverable: 1180,
  expiring: { '1h': 2, '6h': 10 },
  overdue: 0,
  conditions: { config_drift: 3, cert_expiring: 0 },
  replicas: 3,
  standing: 'serving',
  leads: true,
  rates: { enrollments: 1.25, renewals: 0, recoveries: 0 },
  alerts: {
    bySeverity: { critical: 1, warning: 1 },
    first: [
      {
        ...alert,
        kind: 'duplicate_identity',
        severity: 'warning',
        subject: 'a',
        since: new Date(nowMs - 1000).toISOString(),
        reason: 'x',
      },
      {
        ...alert,
        kind: 'cert_expired',
        severity: 'critical',
        subject: 'b\u001b[2J',
        since: new Date(nowMs - 900_000).toISOString(),
        reason: 'two\nlines',
      },
    ] as FleetView['alerts']['first'],
  },
  journal: [
    { atMs: nowMs - 2000, type: 'node.registered', node: 'gpu-001', actor: 'operator:ada' },
    { atMs: nowMs - 1000, type: 'host.enrolled', node: 'gpu-001', actor: 'node:gpu-001' },
  ],
}
const facts = { view, trouble: null, remark: 'q quits', nowMs }

test('a frame has the states, the certificates, the worst alert first and the newest entry first', () => {
  assert.deepEqual(renderFrame(facts, { columns: 100, rows: 24 }, plain), [
    'muster top  muster.local  12:03:05  q quits',
    '',
    'nodes         1,202   1,200 active   2 registered   0 inactive   9 revoked',
    'connected     1,190 (to this replica)   recoverable 1,180   replicas 3   this one serving, leads',
    'certificates  2 end within 1h   10 end within 6h   0 overdue',
    'a second      1.3 enrollments   0.0 renewals   0.0 recoveries',
    'conditions    3 config_drift',
    '',
    'alerts        1 critical   1 warning',
    '  critical 15m     cert_expired  b\\x1b[2J  two\\x0alines',
    '  warning  1s      duplicate_identity  a  x',
    '',
    'journal, newest first',
    '  12:03:04  host.enrolled              gpu-001          node:gpu-001',
    '  12:03:03  node.registered            gpu-001          operator:ada',
  ])
})

test('no frame is larger than its terminal, however small that is', () => {
  for (const [columns, rows] of [
    [40, 10],
    [10, 3],
    [1, 1],
    [200, 60],
  ] as const) {
    const lines = renderFrame(
      { ...facts, trouble: { sentence: 'No plane.', sinceMs: nowMs - 5000 } },
      { columns, rows },
      plain,
    )
    assert.ok(lines.length <= rows, `${columns}x${rows}`)
    assert.ok(
      lines.every((line) => [...line].length <= columns),
      `${columns}x${rows}`,
    )
  }
})

test('a look that failed is named with the age of what is shown', () => {
  const trouble = { sentence: 'No plane answers.', sinceMs: nowMs - 65_000 }
  const [, said] = renderFrame({ ...facts, trouble }, { columns: 100, rows: 24 }, plain)
  assert.equal(said, 'No plane answers. What is shown is 1m old.')
})

test('rates are those of the last minute, or of what a page holds of it', () => {
  const entry = (agoMs: number, type: string) => ({ atMs: nowMs - agoMs, type, node: null, actor: 'x' })
  const few = [entry(90_000, 'host.enrolled'), entry(30_000, 'host.enrolled'), entry(10_000, 'node.renewed')]
  assert.deepEqual(ratesOf(few, nowMs), { enrollments: 1 / 60, renewals: 1 / 60, recoveries: 0 })
  const storm = Array.from({ length: 1000 }, (_, at) => entry(2000 - at * 2, 'host.enrolled'))
  assert.equal(ratesOf(storm, nowMs).enrollments, 500)
})
