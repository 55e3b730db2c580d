import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import { longestOverlay, noOverlay, type Overlay } from './overlay.ts'
import { maintenancePolicy } from '#domain/core/domain-settings.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { decideChangeVCluster, decideCreateVCluster, decideDeleteVCluster, type VCluster } from './vcluster.ts'

const by = { issuers: [], by: alice, nowMs: noonMs }
const nothing = { set: {}, overlay: null }

const make = (changes: Partial<VCluster> = {}): VCluster => {
  const made = decideCreateVCluster({ name: 'training', existing: null, ...nothing, ...by })
  assert.ok(!isRefusal(made))
  return { ...made.vcluster, ...changes }
}

const change = (vcluster: VCluster, set: Record<string, unknown>, overlay: Overlay | null = null) =>
  decideChangeVCluster({ vcluster: row(vcluster), set, overlay, ...by })

const file = (path: string, content = '') => ({ path, mode: 0o644, content })
const service = (name: string) => ({ name, command: ['/bin/true'] })

test('a vCluster starts open, with the policy of maintenance and nothing to run', () => {
  const { policy, overlay, revision, closed, peering } = make()
  assert.deepEqual([policy, overlay, revision], [maintenancePolicy, noOverlay, 1])
  assert.deepEqual([closed, peering], [false, 'mesh'])
})

test('a name is taken until its vCluster is deleted; the next one of that name goes on counting', () => {
  const taken = decideCreateVCluster({ name: 'training', existing: row(make()), ...nothing, ...by })
  assert.ok(isRefusal(taken) && taken.code === 'VCLUSTER_EXISTS')
  const gone = make({ revision: 6, deletedAtMs: noonMs, overlay: { ...noOverlay, files: [file('a')], services: [] } })
  const next = decideCreateVCluster({ name: 'training', existing: row(gone), ...nothing, ...by })
  assert.ok(!isRefusal(next))
  assert.deepEqual([next.vcluster.revision, next.vcluster.overlay.files, next.vcluster.deletedAtMs], [7, [], null])
  assert.deepEqual(next.change.reads, [{ row: 'vcluster', key: 'training', version: 7 }])
})

test('every change makes a revision and says what changed; what is so already makes none', () => {
  const overlay = { ...noOverlay, files: [file('etc/app.conf')], services: [service('worker')] }
  const verdict = change(make(), { 'policy.enforcementMode': 'enforce', description: 'the big one' }, overlay)
  assert.ok(verdict.kind === 'decided')
  assert.equal(verdict.vcluster.revision, 2)
  assert.deepEqual(verdict.change.entries[0]?.body['changes'], [
    'policy.enforcementMode: "observe" -> "enforce"',
    'description: "" -> "the big one"',
    'overlay: file etc/app.conf added, service worker added',
  ])
  assert.deepEqual(change(verdict.vcluster, { description: 'the big one' }, overlay), { kind: 'unchanged' })
})

const refusedFor = (set: Record<string, unknown>, overlay: Overlay | null = null): string => {
  const verdict = change(make(), set, overlay)
  assert.ok(isRefusal(verdict) && verdict.code === 'VCLUSTER_INVALID', JSON.stringify(verdict))
  return verdict.detail ?? ''
}

test('what could not be put in place is refused by name', () => {
  assert.match(refusedFor({ name: 'other' }), /no setting name/)
  assert.match(refusedFor({ revision: 9 }), /no setting revision/)
  assert.match(refusedFor({ peering: 'star' }), /mesh, isolated/)
  assert.match(refusedFor({ 'policy.execWhitelist': Array.from({ length: 33 }, (_, at) => `p${at}`) }), /at most 32/)
  assert.match(refusedFor({ 'policy.shellWhitelist': ['a b'] }), /without spaces/)
  const twice = { ...noOverlay, files: [file('a'), file('b'), file('a')], services: [] }
  assert.match(refusedFor({}, twice), /a is there twice/)
  assert.match(refusedFor({}, { ...noOverlay, files: [], services: [service('x'), service('x')] }), /x is there twice/)
  assert.match(
    refusedFor({}, { ...noOverlay, files: [file('etc'), file('etc/app/conf')], services: [] }),
    /below a path/,
  )
  assert.match(
    refusedFor({}, { ...noOverlay, files: [file('a', 'x'.repeat(longestOverlay))], services: [] }),
    /fit a frame/,
  )
  // As a frame carries them, not as they look.
  assert.match(
    refusedFor({}, { ...noOverlay, files: [file('a', 'ö'.repeat(longestOverlay / 2))], services: [] }),
    /fit a frame/,
  )
})

test('deleting leaves a tombstone without an overlay, of a vCluster that was closed before', () => {
  const open = decideDeleteVCluster({ guarded: false, vcluster: row(make()), ...by })
  assert.ok(isRefusal(open) && open.code === 'VCLUSTER_IN_USE')
  const closed = make({ closed: true, overlay: { ...noOverlay, files: [file('a')], services: [] } })
  const done = decideDeleteVCluster({ guarded: false, vcluster: row(closed), ...by })
  assert.ok(!isRefusal(done))
  assert.equal(done.change.unused, undefined)
  const guarded = decideDeleteVCluster({ guarded: true, vcluster: row(make()), ...by })
  assert.ok(!isRefusal(guarded), 'one that is open, where the store looks again')
  assert.deepEqual(guarded.change.unused, [{ kind: 'vcluster', name: guarded.vcluster.name }])
  const { deletedAtMs, revision, overlay } = done.vcluster
  assert.deepEqual([deletedAtMs, revision, overlay.files], [noonMs, 2, []])
  for (const gone of [
    decideDeleteVCluster({ guarded: false, vcluster: row(done.vcluster), ...by }),
    change(done.vcluster, { closed: false }),
  ])
    assert.ok(isRefusal(gone) && gone.code === 'VCLUSTER_NOT_FOUND')
})
