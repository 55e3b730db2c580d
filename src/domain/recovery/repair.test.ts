import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, writesOf } from '../../../test/fakes/expect-decision.ts'
import {
  alice,
  domainRow,
  hour,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  repair,
  slots,
} from '../../../test/fakes/sample-rows.ts'
import { noHardware, type Membership, type Node } from '#domain/core/node.ts'
import { decideRepairBundle, decideRepairEvidence, repairChecksOf, type RepairObserved } from './repair.ts'

const bundle = (kind: Membership['kind'], changes: Partial<Node> = {}) =>
  decideRepairBundle({
    node: nodeRow(kind, changes),
    reason: 'stale trust',
    id: 'r2',
    hash: 'hash-2',
    expiresAtMs: noonMs + hour,
    domain: domainRow(),
    by: alice,
    nowMs: noonMs,
  })

const repaired = (changes: Partial<Node> = {}) =>
  nodeRow('quarantined', {
    membership: { ...memberships.quarantined, slots: slots() },
    repair: repair({ usedBy: { spki: 'key-of-a1', epoch: 4, atMs: noonMs } }),
    ...changes,
  })

test('a bundle quarantines the node it is made for and keeps only the hash of its secret', () => {
  const verdict = expectDecided(bundle('active'))
  assert.ok(verdict.node.membership.kind === 'quarantined')
  assert.equal(verdict.node.membership.reason, 'to be repaired: stale trust')
  assert.deepEqual(verdict.node.repair, {
    id: 'r2',
    hash: 'hash-2',
    by: 'operator:alice',
    reason: 'stale trust',
    issuedAtMs: noonMs,
    expiresAtMs: noonMs + hour,
    usedBy: null,
    evidence: null,
  })
  assert.deepEqual(entryTypesOf(verdict), ['node.quarantined', 'node.repair_bundle_issued'])
  assert.equal(writesOf(verdict, 'denial').length, 1)
  expectRefused(bundle('revoked'), 'NODE_REVOKED')
})

test('a second bundle voids the first, and what was recovered with it', () => {
  const verdict = expectDecided(bundle('quarantined', repaired().value))
  assert.deepEqual(verdict.node.membership, memberships.quarantined)
  assert.deepEqual([verdict.node.repair?.id, verdict.node.repair?.usedBy], ['r2', null])
  assert.deepEqual(entryTypesOf(verdict), ['node.superseded', 'node.repair_bundle_issued'])
  assert.equal(verdict.change.entries.at(-1)?.body['voids'], 'r1')
  assert.equal(writesOf(verdict, 'denial').length, 1)
  // In quarantine without a certificate there is nothing to take away.
  assert.deepEqual(entryTypesOf(expectDecided(bundle('quarantined'))), ['node.repair_bundle_issued'])
})

const observed = (changes: Partial<RepairObserved> = {}): RepairObserved => ({
  node: repaired({ rehearsal: { outcome: 'passed', sinceMs: noonMs, epoch: 4 } }).value,
  profile: profileRow('gpu-cloud').value,
  domain: domainRow().value,
  hardware: { macs: ['02:00:00:00:00:01'], bmcSerial: 'BMC-1' },
  clockSkewMs: -minute,
  identityWritable: true,
  diskReserve: true,
  ...changes,
})

const failing = (changes: Partial<RepairObserved>): string[] =>
  repairChecksOf(observed(changes))
    .filter(({ ok }) => !ok)
    .map(({ name }) => name)

test('a repaired machine shows hardware, clock, storage, reserve and a rehearsal of its own epoch', () => {
  assert.deepEqual(failing({}), [])
  assert.deepEqual(failing({ hardware: { macs: ['02:00:00:00:00:09'], bmcSerial: 'BMC-1' } }), ['hardware'])
  assert.deepEqual(failing({ node: { ...observed().node, hardware: noHardware }, hardware: noHardware }), [])
  const unregistered = { ...observed().node, hardware: noHardware }
  const enrolled = (mac: string) => ({ reportedHardware: { macs: [mac], bmcSerial: null, epoch: unregistered.epoch } })
  assert.deepEqual(failing({ node: { ...unregistered, ...enrolled('02:00:00:00:00:01') } }), [])
  assert.deepEqual(failing({ node: { ...unregistered, ...enrolled('02:00:00:00:00:09') } }), ['hardware'])
  assert.deepEqual(failing({ clockSkewMs: -6 * minute }), ['clock'])
  assert.deepEqual(failing({ identityWritable: false, diskReserve: false }), ['persisted', 'disk'])
  const early = { outcome: 'passed', sinceMs: noonMs, epoch: 3 } as const
  assert.deepEqual(failing({ node: { ...observed().node, rehearsal: early } }), ['rehearsal'])
  assert.deepEqual(
    failing({ node: { ...observed().node, rehearsal: null }, profile: profileRow('hpc-diskless').value }),
    [],
  )
})

test('evidence passes when every check did, is journaled when that changes, and never without checks', () => {
  const checks = repairChecksOf(observed())
  const show = (node = repaired(), shown = checks) =>
    decideRepairEvidence({ node, checks: shown, by: alice, nowMs: noonMs })
  const first = expectDecided(show())
  assert.equal(first.node.repair?.evidence?.passed, true)
  assert.deepEqual(entryTypesOf(first), ['node.repair_evidence'])
  const known = { value: first.node, version: 8 }
  assert.equal(show(known).kind, 'unchanged')
  const worse = repairChecksOf(observed({ clockSkewMs: hour }))
  assert.equal(expectDecided(show(known, worse)).node.repair?.evidence?.passed, false)
  assert.equal(expectDecided(show(repaired(), [])).node.repair?.evidence?.passed, false)
})

test('evidence is accepted only from the identity that the repair made', () => {
  const outcomeOf = (node: ReturnType<typeof repaired>) =>
    decideRepairEvidence({ node, checks: repairChecksOf(observed()), by: alice, nowMs: noonMs }).kind
  assert.equal(outcomeOf(repaired()), 'decided')
  assert.equal(outcomeOf(repaired({ epoch: 5 })), 'unchanged')
  assert.equal(outcomeOf(nodeRow('quarantined', { repair: repair() })), 'unchanged')
  assert.equal(outcomeOf(nodeRow('active')), 'unchanged')
})
