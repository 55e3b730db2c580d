import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideOverlayShown, ownCheck, type OverlayShown } from './overlay-shown.ts'
import { schedulingOf } from './scheduling.ts'
import { alice, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import type { Condition, Node } from '#domain/core/node.ts'

const well: OverlayShown = { applied: true, detail: null, drift: [], failed: [], unhealthy: [] }
const drifted: OverlayShown = { ...well, drift: ['file etc/app.conf: changed', 'service worker: not running'] }
const failed: OverlayShown = { ...well, applied: false, detail: 'no space left' }

const shows = (shown: OverlayShown, changes: Partial<Node> = { assignment: 'training' }, atMs = noonMs) =>
  decideOverlayShown({ node: nodeRow('active', changes), shown, by: alice, nowMs: atMs })

const after = (shown: OverlayShown, changes?: Partial<Node>): readonly Condition[] => {
  const verdict = shows(shown, changes)
  assert.ok(verdict.kind === 'decided')
  return verdict.node.conditions
}

test('drift and failure are raised with what the agent said of them, and a repeated state writes nothing', () => {
  const [condition] = after(drifted)
  assert.deepEqual(
    [condition?.name, condition?.evidence],
    ['config_drift', { first: 'file etc/app.conf: changed', differences: 2 }],
  )
  assert.deepEqual(after(failed)[0]?.evidence, { detail: 'no space left' })
  const standing = { assignment: 'training', conditions: after(drifted) }
  assert.deepEqual(shows(drifted, standing, noonMs + 1000), { kind: 'unchanged' })
  assert.deepEqual(shows({ ...drifted, drift: ['something else'] }, standing), { kind: 'unchanged' })
  assert.deepEqual(shows(well), { kind: 'unchanged' })
})

test('what the agent no longer shows is over, and nothing else is', () => {
  const other: Condition = { name: 'disk_full', sinceMs: 1, reason: 'r', evidence: {} }
  const conditions = [other, ...after({ ...drifted, ...failed, drift: drifted.drift })]
  assert.deepEqual(after(well, { assignment: 'training', conditions }), [other])
  const verdict = shows(failed, { assignment: 'training', conditions })
  assert.ok(verdict.kind === 'decided')
  assert.deepEqual(
    verdict.change.entries.map(({ type, body }) => [type, body['condition']]),
    [['node.condition_cleared', 'config_drift']],
  )
})

test('in maintenance mode nothing drifts, and an existing drift is cleared; a failed overlay is reported all the same', () => {
  assert.deepEqual(shows(drifted, { assignment: null }), { kind: 'unchanged' })
  assert.deepEqual(after(drifted, { assignment: null, conditions: after(drifted) }), [])
  assert.equal(after(failed, { assignment: null })[0]?.name, 'overlay_failed')
})

test('a tombstone has no conditions', () => {
  const verdict = decideOverlayShown({ node: nodeRow('revoked'), shown: failed, by: alice, nowMs: noonMs })
  assert.deepEqual(verdict, { kind: 'unchanged' })
})

const enoent = { name: 'worker', error: 'could not be started: spawn /nope/bin ENOENT', output: [] }
const crashing = { name: 'feeder', error: 'ended with exit code 1', output: ['one', 'two', 'no such table'] }
const broken: OverlayShown = { ...well, failed: [enoent] }

test('a service that does not run is a condition of its own, with why and the last lines it wrote', () => {
  const [condition] = after(broken)
  assert.deepEqual(
    [condition?.name, condition?.reason, condition?.evidence],
    ['service_failed', 'service worker not running', { service: 'worker', error: enoent.error }],
  )
  assert.deepEqual(after({ ...well, failed: [crashing] })[0]?.evidence, {
    ...{ service: 'feeder', error: 'ended with exit code 1' },
    ...{ line_1: 'one', line_2: 'two', line_3: 'no such table' },
  })
  const verdict = shows(broken)
  assert.ok(verdict.kind === 'decided')
  assert.deepEqual(schedulingOf(verdict.node), { state: 'unavailable', reasons: ['service_failed'] })
})

test('another service that fails is said; the same one that fails in another way is not said again', () => {
  const standing = { assignment: 'training', conditions: after(broken) }
  const otherwise = { ...broken, failed: [{ ...enoent, error: 'ended by SIGKILL' }] }
  assert.deepEqual(shows(otherwise, standing, noonMs + 1000), { kind: 'unchanged' })
  const [both] = after({ ...well, failed: [enoent, crashing] }, standing)
  assert.equal(both?.reason, 'services worker, feeder not running')
  assert.deepEqual(after(well, standing), [])
})

const sick: OverlayShown = { ...well, unhealthy: [{ name: 'gpus', line: '7 of 8 GPUs on the PCI bus' }] }

test('a check that fails makes the node unhealthy with its line, until it passes', () => {
  const [condition] = after(sick)
  assert.deepEqual(
    [condition?.name, condition?.evidence],
    ['unhealthy', { [ownCheck]: 'gpus', says: '7 of 8 GPUs on the PCI bus' }],
  )
  assert.deepEqual(after(well, { assignment: 'training', conditions: after(sick) }), [])
})

test('what an operator has said of its health is not for the agent to end', () => {
  const conditions: readonly Condition[] = [{ name: 'unhealthy', sinceMs: 1, reason: 'xid 79', evidence: { gpu: 3 } }]
  assert.deepEqual(shows(sick, { assignment: 'training', conditions }), { kind: 'unchanged' })
  assert.deepEqual(shows(well, { assignment: 'training', conditions }), { kind: 'unchanged' })
})
