import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hour, noonMs, nodeRow } from '../../../test/fakes/sample-rows.ts'
import { alertsOfAging, alertsOfNode, nodeAlertKinds } from './alert-wanted.ts'
import { conditionNames, type Condition } from '#domain/core/node.ts'

const conditions: Condition[] = conditionNames.map((name) => ({
  name,
  sinceMs: noonMs - hour,
  reason: `of ${name}`,
  evidence: {},
}))

test('a person looks at eleven conditions of a node, each since it was raised', () => {
  const alerts = alertsOfNode(nodeRow('active', { conditions }).value)
  assert.deepEqual(
    alerts.map(({ kind, severity, reason }) => [kind, severity, reason]),
    [
      ['stuck_enrollment', 'warning', 'of stuck_enrollment'],
      ['cert_expired', 'critical', 'of cert_expired'],
      ['spoof_suspected', 'critical', 'of spoof_suspected'],
      ['duplicate_identity', 'critical', 'of duplicate_identity'],
      ['recovery_waits', 'warning', 'of needs_approval'],
      ['unhealthy', 'warning', 'of unhealthy'],
      ['overlay_failed', 'warning', 'of overlay_failed'],
      ['config_drift', 'warning', 'of config_drift'],
      ['service_failed', 'warning', 'of service_failed'],
      ['wireguard_failed', 'warning', 'of wireguard_failed'],
      ['active_elsewhere', 'warning', 'of active_elsewhere'],
      ['output_failed', 'warning', 'of output_failed'],
    ],
  )
  assert.deepEqual([...nodeAlertKinds], [...alerts.map(({ kind }) => kind), 'quarantined'])
  assert.ok(alerts.every(({ subject, sinceMs }) => subject === 'gpu-001' && sinceMs === noonMs - hour))
})

test('of two holders both are named', () => {
  const evidence = {
    claimant: '192.0.2.2, instance 22222222, agent 0.1.0',
    claimant_hardware: `machine 22222222, BMC serial ${'x'.repeat(100)}`,
    holder: '192.0.2.1, instance 11111111, agent 0.1.0',
    holder_hardware: 'machine 11111111',
  }
  const condition: Condition = { name: 'duplicate_identity', sinceMs: noonMs, reason: 'two', evidence }
  const [alert] = alertsOfNode(nodeRow('active', { conditions: [condition] }).value)
  assert.match(alert?.reason ?? '', /^two: 192\.0\.2\.2, instance 22222222.*; and 192\.0\.2\.1, instance 11111111/)
  assert.match(alert?.reason ?? '', /machine 22222222, BMC serial x+….*machine 11111111$/)
  assert.ok((alert?.reason ?? '').length <= 256)
})

test('why a service does not run, and what a check says, is in the alert', () => {
  const condition = (name: Condition['name'], evidence: Condition['evidence']): Condition => ({
    ...{ name, sinceMs: noonMs, reason: 'r', evidence },
  })
  const conditions = [
    condition('service_failed', { service: 'worker', error: 'ended with exit code 1' }),
    condition('unhealthy', { agent_check: 'gpus', says: '7 of 8 GPUs' }),
  ]
  assert.deepEqual(
    alertsOfNode(nodeRow('active', { conditions }).value).map(({ reason }) => reason),
    ['r: ended with exit code 1', 'r: 7 of 8 GPUs'],
  )
})

test('a quarantine is critical, since it began, with its reason and who said so', () => {
  assert.deepEqual(alertsOfNode(nodeRow('quarantined').value), [
    {
      ...{ kind: 'quarantined', severity: 'critical', subject: 'gpu-001', node: 'gpu-001' },
      ...{ sinceMs: noonMs - hour, reason: 'odd traffic (by operator:carol)' },
    },
  ])
})

test('a revoked node raises no alert', () => {
  assert.deepEqual(alertsOfNode(nodeRow('revoked', { conditions }).value), [])
})

const aging = (age: number) =>
  alertsOfAging({
    servers: [{ subject: 'recovery', notBeforeMs: noonMs - age * hour, notAfterMs: noonMs + (90 - age) * hour }],
    authorities: [],
    lost: [],
    signs: true,
    nowMs: noonMs,
  }).map(({ kind, subject, severity }) => `${kind} ${subject} ${severity}`)

test('a server certificate that was not renewed at half its life raises an alert, and a more urgent one near its end', () => {
  assert.deepEqual(aging(59), [])
  assert.deepEqual(aging(60), ['server_certificate_aging recovery warning'])
  assert.deepEqual(aging(81), ['server_certificate_aging recovery critical'])
  assert.deepEqual(aging(91), ['server_certificate_aging recovery critical'])
})

test('each authority is one alert with the first of what is said of it; when nothing can sign, all are urgent', () => {
  const authorities = [
    { issuer: 'ca1', text: 'ends soon' },
    { issuer: 'root', text: 'the root ends' },
    { issuer: 'ca1', text: 'and besides' },
  ]
  const said = (signs: boolean) =>
    alertsOfAging({ servers: [], authorities, lost: [], signs, nowMs: noonMs })
      .map(({ subject, reason, severity }) => `${subject}: ${reason} (${severity})`)
      .sort()
  assert.deepEqual(said(true), ['ca1: ends soon (warning)', 'root: the root ends (warning)'])
  assert.deepEqual(said(false), ['ca1: ends soon (critical)', 'root: the root ends (critical)'])
})
