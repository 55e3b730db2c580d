import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf } from '../../../test/fakes/expect-decision.ts'
import { membershipKinds, noHardware } from '#domain/core/node.ts'
import { decideRegister, type RegisterFacts } from './registration.ts'
import { alice, neverKnown, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'

const facts: RegisterFacts = {
  id: 'gpu-001',
  profile: profileRow('gpu-cloud'),
  hardware: { macs: ['02:00:00:00:00:01'], bmcSerial: 'BMC-1' },
  existing: null,
  former: neverKnown,
  owners: [],
  by: alice,
  nowMs: noonMs,
}

test('an unknown node is registered, and the change relies on it being unknown', () => {
  const verdict = expectDecided(decideRegister(facts))
  assert.deepEqual(verdict.node.membership, { kind: 'registered', sinceMs: noonMs })
  assert.equal(verdict.node.epoch, 0)
  assert.equal(verdict.node.registeredBy, 'operator:alice')
  assert.deepEqual(readsOf(verdict), ['node/gpu-001@0', 'purged-node/hash-of-name@0', 'profile/gpu-cloud@5'])
  assert.deepEqual(verdict.change.entries[0], {
    type: 'node.registered',
    atMs: noonMs,
    ...alice,
    node: 'gpu-001',
    epoch: 0,
    token: null,
    issuer: null,
    serial: null,
    body: { profile: 'gpu-cloud', macs: ['02:00:00:00:00:01'], bmc_serial: 'BMC-1' },
  })
})

test('a tombstone is registered anew and keeps counting its epochs', () => {
  const existing = nodeRow('revoked', { drain: 'drained', assignment: 'vc1' })
  const { node, ...verdict } = expectDecided(decideRegister({ ...facts, existing, owners: [existing] }))
  assert.equal(node.membership.kind, 'registered')
  assert.equal(node.epoch, 4)
  assert.equal(node.assurance, 'none')
  assert.equal(node.drain, 'none')
  assert.equal(node.assignment, null)
  assert.deepEqual(readsOf(verdict), ['node/gpu-001@7', 'profile/gpu-cloud@5'])
  assert.deepEqual(entryTypesOf(verdict), ['node.registered'])
})

test('a node in the store is not registered twice, whatever its state', () => {
  for (const kind of membershipKinds.filter((one) => one !== 'revoked')) {
    expectRefused(
      decideRegister({ ...facts, existing: nodeRow(kind) }),
      'NODE_ALREADY_ENROLLED',
      new RegExp(`^gpu-001 is ${kind}$`),
    )
  }
})

test('a repeat with other hardware or another profile gets what is in the store', () => {
  const existing = nodeRow('active', { hardware: { macs: [], bmcSerial: 'BMC-9' }, profile: 'mesh-paas' })
  const said = /with other hardware: BMC serial BMC-9 and under profile mesh-paas/
  expectRefused(decideRegister({ ...facts, existing }), 'NODE_ALREADY_ENROLLED', said)
})

test('hardware of another node is refused with its owner; a tombstone owns nothing', () => {
  const other = nodeRow('inactive', { id: 'gpu-002' })
  expectRefused(decideRegister({ ...facts, owners: [other] }), 'HARDWARE_IDENTITY_CONFLICT', /^gpu-002 has 02:/)
  expectDecided(decideRegister({ ...facts, owners: [nodeRow('revoked', { id: 'gpu-002' })] }))
})

test('a profile that finds nodes by hardware needs some', () => {
  const blank = { ...facts, hardware: noHardware }
  expectRefused(decideRegister({ ...blank, profile: profileRow('hpc-diskless') }), 'REQUEST_INVALID', /MAC or a BMC/)
  expectDecided(decideRegister(blank))
})

test('the name of a purged node goes on where that one ended, and no version of its row comes twice', () => {
  const value = { name: 'hash-of-name', epoch: 7, tenure: 3, counter: 40, version: 12, purgedAtMs: noonMs }
  const former = { key: 'hash-of-name', row: { value, version: 2 } }
  const verdict = expectDecided(decideRegister({ ...facts, former }))
  assert.deepEqual([verdict.node.epoch, verdict.node.tenure, verdict.node.counter], [7, 4, 40])
  assert.deepEqual(verdict.change.reads.slice(0, 2), [
    { row: 'node', key: 'gpu-001', version: 0, removedAt: 12 },
    { row: 'purged-node', key: 'hash-of-name', version: 2 },
  ])
})
