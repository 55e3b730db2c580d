import assert from 'node:assert/strict'
import { test } from 'node:test'
import { overlayChanges, noOverlay, type Overlay, decideOverlayShown, type OverlayShown } from './overlay.ts'
import { alice, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import type { Condition, Node } from '#domain/core/node.ts'

const overlay = (files: Record<string, string>, services: Record<string, string>): Overlay => ({
  files: Object.entries(files).map(([path, content]) => ({ path, mode: 0o644, content })),
  services: Object.entries(services).map(([name, program]) => ({ name, command: [program] })),
})

test('what has become of an overlay names files and services, and nothing of what is in them', () => {
  const before = overlay({ 'etc/a': 'secret', 'etc/b': 'b' }, { one: '/bin/one', two: '/bin/two' })
  const after = overlay({ 'etc/a': 'another', 'etc/c': 'c' }, { two: '/bin/two', one: '/bin/1' })
  assert.deepEqual(overlayChanges(before, after), [
    'file etc/b removed',
    'file etc/a changed',
    'file etc/c added',
    'service one changed',
  ])
  assert.deepEqual(overlayChanges(noOverlay, before).length, 4)
  assert.deepEqual(overlayChanges(before, before), [])
})

const well: OverlayShown = { applied: true, detail: null, drift: [] }
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
