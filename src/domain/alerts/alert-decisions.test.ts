import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, minute, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import { acknowledgementOf, type Alert } from './alert.ts'
import { decideAcknowledge, decideAlert, type AlertFacts } from './alert-decisions.ts'
import type { WantedAlert } from './alert-kinds.ts'

const about = { kind: 'cert_expired', subject: 'gpu-001', node: 'gpu-001' } as const
const wanted: WantedAlert = { ...about, severity: 'critical', reason: 'it ran out', sinceMs: noonMs - minute }
const open: Alert = {
  ...about,
  id: 'A1',
  severity: 'critical',
  sinceMs: noonMs - minute,
  reason: 'it ran out',
  state: { kind: 'open' },
}
const acknowledged: Alert = { ...open, state: { kind: 'acknowledged', by: 'operator:bob', atMs: noonMs, note: null } }
const resolved: Alert = { ...open, state: { kind: 'resolved', atMs: noonMs } }

const decide = (facts: Partial<AlertFacts>) =>
  decideAlert({
    wanted,
    existing: null,
    reliedOn: [{ row: 'node', key: 'gpu-001', version: 7 }],
    newId: 'A2',
    by: { actor: 'system:alerts', source: null, correlation: null },
    nowMs: noonMs,
    ...facts,
  })

const decided = (facts: Partial<AlertFacts>) => {
  const verdict = decide(facts)
  assert(verdict.kind === 'decided')
  return { ...verdict, types: verdict.change.entries.map(({ type }) => type) }
}

test('what is wanted and not there is raised, since it began', () => {
  const { alert, types, change } = decided({})
  assert.deepEqual(alert, { ...open, id: 'A2' })
  assert.deepEqual(types, ['alert.raised'])
  assert.deepEqual(change.reads, [
    { row: 'node', key: 'gpu-001', version: 7 },
    { row: 'alert', key: 'cert_expired/gpu-001', version: 0 },
  ])
})

test('what has no known beginning began now', () => {
  assert.equal(decided({ wanted: { ...wanted, sinceMs: null } }).alert.sinceMs, noonMs)
})

test('a repeated report of an alert is not a new alert, acknowledged or not', () => {
  for (const existing of [open, acknowledged]) assert.equal(decide({ existing: row(existing) }).kind, 'unchanged')
})

test('an alert that recurs after it was resolved is raised again, under a new id', () => {
  const { alert, types } = decided({ existing: row(resolved) })
  assert.deepEqual([alert.id, alert.state.kind, types], ['A2', 'open', ['alert.raised']])
})

test('what ended and began again between two looks is reported as both, and an earlier acknowledgement does not cover it', () => {
  const { alert, types, change } = decided({
    existing: row(acknowledged),
    wanted: { ...wanted, sinceMs: noonMs - 1000 },
  })
  assert.deepEqual([alert.id, alert.state.kind, types], ['A2', 'open', ['alert.resolved', 'alert.raised']])
  assert.deepEqual(
    change.entries.map(({ body }) => [body['alert'], body['state']]),
    [
      ['A1', 'resolved'],
      ['A2', 'open'],
    ],
  )
})

test('what becomes worse is raised anew; what becomes better is not', () => {
  const warning: Alert = { ...acknowledged, severity: 'warning' }
  assert.equal(decided({ existing: row(warning) }).alert.severity, 'critical')
  assert.equal(decide({ existing: row(acknowledged), wanted: { ...wanted, severity: 'warning' } }).kind, 'unchanged')
})

test('what is no longer wanted is resolved once', () => {
  const { alert, types } = decided({ wanted: null, existing: row(acknowledged) })
  assert.deepEqual([alert.id, alert.state.kind, types], ['A1', 'resolved', ['alert.resolved']])
  assert.equal(decide({ wanted: null, existing: row(resolved) }).kind, 'unchanged')
  assert.equal(decide({ wanted: null }).kind, 'unchanged')
})

test('an alert that ends keeps who acknowledged it', () => {
  const { state } = decided({ wanted: null, existing: row(acknowledged) }).alert
  const given = { by: 'operator:bob', atMs: noonMs, note: null }
  assert.deepEqual(state, { kind: 'resolved', atMs: noonMs, acknowledged: given })
  assert.deepEqual(acknowledgementOf(state), given)
})

test('text from a node is cut and cannot forge lines', () => {
  const { alert } = decided({ wanted: { ...wanted, reason: `a\nb\u202e${'x'.repeat(1000)}` } })
  assert.equal(alert.reason.length, 800)
  assert.match(alert.reason, /^a b x+…$/)
})

test('the first acknowledgement stays, and one of what is over changes nothing', () => {
  const first = decideAcknowledge({ alert: row(open), note: 'on\tit', by: alice, nowMs: noonMs })
  assert(first.kind === 'decided')
  assert.deepEqual(first.alert.state, { kind: 'acknowledged', by: 'operator:alice', atMs: noonMs, note: 'on it' })
  assert.deepEqual(
    first.change.entries.map(({ type, actor }) => [type, actor]),
    [['alert.acknowledged', 'operator:alice']],
  )
  for (const alert of [acknowledged, resolved]) {
    const again = decideAcknowledge({ alert: row(alert), note: null, by: alice, nowMs: noonMs })
    assert.deepEqual(again, { kind: 'unchanged', alert })
  }
  const missing = decideAcknowledge({ alert: null, note: null, by: alice, nowMs: noonMs })
  assert.equal(missing.kind === 'refused' && missing.code, 'ALERT_NOT_FOUND')
})
