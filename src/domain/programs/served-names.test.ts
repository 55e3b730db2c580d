import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice as by, noonMs as nowMs, row } from '../../../test/fakes/sample-rows.ts'
import { claimedName, type NameClaim, type NameHolder } from './name-claim.ts'
import { decideDropName, takeNames } from './served-names.ts'

const claimed = (name: string, holder: NameHolder) => row<NameClaim>({ name, holder, sinceMs: 1, by: 'operator:carol' })
const served = { kind: 'plane', use: 'certificate', joinStrings: 2, retaken: false, dropped: null } as const
const wanted = { name: 'dns:plane.example', use: 'certificate', row: null, carriedBy: null } as const

test('names are compared in lower case without a trailing dot, addresses as bytes', () => {
  assert.equal(claimedName('Plane.Example.'), 'dns:plane.example')
  assert.equal(claimedName('2001:DB8:0:0::1'), 'ip:2001:db8::1')
  assert.equal(claimedName('::ffff:10.0.0.7'), claimedName('10.0.0.7'))
})

test('a free name, one taken from a node and one dropped before become the plane’s', () => {
  const dropped = { ...served, dropped: { atMs: 1, by: 'operator:carol' } }
  for (const before of [null, claimed(wanted.name, { kind: 'nobody' }), claimed(wanted.name, dropped)]) {
    const taken = takeNames([{ ...wanted, row: before }], by, nowMs)
    assert.ok(taken.kind === 'part')
    const [write] = taken.part.writes
    assert.ok(write?.put === 'name-claim' && write.value.holder.kind === 'plane')
    assert.equal(write.value.holder.dropped, null)
    assert.equal(write.value.holder.retaken, before?.value.holder.kind === 'plane')
    assert.equal(taken.part.reads[0]?.version, before === null ? 0 : before.version)
    assert.equal(taken.part.entries.length, 1)
  }
})

test('a name that the plane has already is only read, so that a drop meanwhile wins the race', () => {
  const taken = takeNames([{ ...wanted, row: claimed(wanted.name, served) }], by, nowMs)
  assert.ok(taken.kind === 'part')
  assert.deepEqual([taken.part.reads.length, taken.part.writes.length], [1, 0])
})

test('a name of a node, and one that a leaf still carries, are not the plane’s to take', () => {
  const node = { kind: 'node', node: 'db-1', derived: false } as const
  const registered = takeNames([{ ...wanted, row: claimed(wanted.name, node) }], by, nowMs)
  assert.deepEqual(registered, { kind: 'held', name: wanted.name, node: 'db-1', how: 'registered' })
  const carried = takeNames([{ ...wanted, carriedBy: 'db-1' }], by, nowMs)
  assert.deepEqual(carried, { kind: 'held', name: wanted.name, node: 'db-1', how: 'carried' })
})

test('a dropped name stays the plane’s; one that is configured, unknown or dropped before is not dropped', () => {
  const host = 'plane.example'
  const facts = {
    host,
    row: claimed(wanted.name, served),
    configured: false,
    listensThere: false,
    why: 'x',
    extra: {},
    by,
    nowMs,
  }
  const done = decideDropName(facts)
  assert.ok(done.kind === 'decided')
  assert.deepEqual(done.claim.holder, { ...served, dropped: { atMs: nowMs, by: by.actor } })
  const asAddress = decideDropName({ ...facts, listensThere: true })
  assert.deepEqual(asAddress.kind === 'decided' && asAddress.claim.holder, { ...served, use: 'address' })
  const codes = [
    decideDropName({ ...facts, configured: true }),
    decideDropName({ ...facts, row: null }),
    decideDropName({ ...facts, row: claimed(wanted.name, { kind: 'nobody' }) }),
    decideDropName({ ...facts, row: row(done.claim) }),
  ].map((no) => no.kind === 'refused' && no.code)
  assert.deepEqual(codes, ['NAME_CONFIGURED', 'NAME_NOT_FOUND', 'NAME_NOT_FOUND', 'NAME_NOT_FOUND'])
})
