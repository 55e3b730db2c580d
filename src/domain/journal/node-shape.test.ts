import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import { nodeAsRead, withCertificates } from './node-shape.ts'
import { noHardware, type Node } from '#domain/core/node.ts'

const slot = { issuer: 'aa', serial: '01', spki: 'bb', sha256: 'cc', issuedAtMs: 1, notAfterMs: 2 }
const whole: Node = {
  id: 'gpu-001',
  profile: 'gpu-cloud',
  membership: { kind: 'active', sinceMs: 5, slots: { current: slot, pending: null, retired: null } },
  epoch: 3,
  tenure: 1,
  assignment: null,
  drain: 'none',
  allocations: 0,
  wireguard: null,
  machine: nothingTagged,
  hardware: noHardware,
  facts: null,
  assurance: 'token',
  conditions: [],
  approvals: [],
  counter: 7,
  recovery: null,
  repair: null,
  rehearsal: null,
  provisioning: null,
  scrapeAddress: null,
  registeredAtMs: 4,
  registeredBy: 'operator:admin',
}

test('a row that fits is read as it is', () => {
  assert.equal(nodeAsRead('gpu-001', whole), whole)
})

test('a row that lost any one of its fields is read as a stand-in that is shut out and names the field', () => {
  for (const name of Object.keys(whole).filter((field) => field !== 'id')) {
    const { [name as keyof Node]: _lost, ...rest } = whole
    const read = nodeAsRead('gpu-001', rest)
    assert.equal(read.unreadable, `no good ${name}`)
    assert.deepEqual([read.id, read.membership.kind], ['gpu-001', 'quarantined'])
    assert.equal(nodeAsRead('gpu-001', { ...read, unreadable: undefined }).unreadable, undefined, 'it is whole itself')
    if (name !== 'epoch') assert.equal(read.epoch, 3)
  }
})

test('what lies deeper, is no JSON, or is the row of another node is unreadable too', () => {
  const lost = { ...whole, membership: { kind: 'active', sinceMs: 5, slotz: {} } }
  assert.equal(nodeAsRead('gpu-001', lost).unreadable, 'no good membership')
  assert.equal(nodeAsRead('gpu-001', undefined).unreadable, 'it holds no JSON object')
  assert.equal(nodeAsRead('gpu-001', []).unreadable, 'it holds no JSON object')
  assert.match(nodeAsRead('gpu-002', whole).unreadable ?? '', /the row of another node/)
})

test('a stand-in keeps nothing of the row of another node', () => {
  const credential = { kind: 'key', spki: 'ab', publicKey: '', registeredAtMs: 1 } as const
  const recovery = { credential, recoveredAtMs: [], denied: null, episode: null }
  const hardware = { macs: ['02:00:00:00:00:01'], bmcSerial: 'S1' }
  for (const other of [
    { ...whole, recovery, hardware },
    { ...whole, recovery, hardware, counter: null },
  ]) {
    const read = nodeAsRead('gpu-002', other)
    assert.deepEqual([read.id, read.epoch, read.counter, read.recovery], ['gpu-002', 0, 0, null])
    assert.deepEqual([read.hardware, read.membership.sinceMs], [noHardware, 0])
  }
})

test('a stand-in that something wrote stays one', () => {
  const read = nodeAsRead('gpu-001', { ...whole, epoch: 'three' })
  const written = { ...read, membership: whole.membership, conditions: [] }
  assert.deepEqual(nodeAsRead('gpu-001', JSON.parse(JSON.stringify(written))), { ...read })
})

test('rows of certificates give back the newest epoch and the certificates that are denied with it', () => {
  const read = nodeAsRead('gpu-001', { ...whole, epoch: null, membership: null })
  const row = { ...slot, der: '', order: '', renews: null }
  const of = (epoch: number, notAfterMs: number, serial: string) => ({
    ...{ ...row, notAfterMs, serial },
    subject: { kind: 'node', node: 'gpu-001', epoch } as const,
  })
  const { unreadable, epoch, membership } = withCertificates(
    read,
    [of(1, 99, '01'), of(2, 10, '02'), of(2, 20, '03')],
    [],
  )
  assert.deepEqual([unreadable, epoch, membership.kind], [undefined, 2, 'inactive'])
  assert.ok(membership.kind === 'inactive')
  assert.deepEqual([membership.slots?.current.serial, membership.slots?.pending?.serial], ['03', '02'])
})

test('a count is a whole number and not below zero, and a time is one that a date can be made of', () => {
  for (const epoch of [-1, 1.5, 1e308, '1']) {
    assert.equal(nodeAsRead('gpu-001', { ...whole, epoch }).unreadable, 'no good epoch')
  }
  assert.equal(nodeAsRead('gpu-001', { ...whole, registeredAtMs: 9e15 }).unreadable, 'no good registeredAtMs')
})

test('what a list holds is looked at too', () => {
  const condition = { name: 'disk_full', sinceMs: 1, reason: 'r', evidence: {} }
  const approval = { by: 'operator:alice', atMs: 1 }
  const good = { ...whole, conditions: [condition], approvals: [approval], hardware: { macs: ['a'], bmcSerial: null } }
  assert.equal(nodeAsRead('gpu-001', good).unreadable, undefined)
  for (const [field, value] of [
    ['conditions', [null]],
    ['conditions', [condition, {}]],
    ['approvals', ['operator:alice']],
    ['hardware', { macs: [1], bmcSerial: null }],
    ['machine', { ...nothingTagged, slots: [null] }],
    ['machine', { ...nothingTagged, tags: [{}] }],
    ['recovery', { credential: {}, recoveredAtMs: [], denied: null, episode: null }],
    ['repair', { hash: 'h', expiresAtMs: 1, usedBy: null, evidence: { checks: [null] } }],
    ['wireguard', {}],
  ] as const) {
    const read = nodeAsRead('gpu-001', { ...good, [field]: value })
    assert.equal(read.unreadable, `no good ${field}`)
  }
})
