import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice as by, noonMs as nowMs, row } from '../../../test/fakes/sample-rows.ts'
import { claimedName, type NameClaim, type NameHolder, type PlaneHolder } from './name-claim.ts'
import { calledSinceMs, decideCalled, decideDropName, decideGiveBack, returnedAtMs, takeNames } from './served-names.ts'

const claimed = (name: string, holder: NameHolder, carriedUntilMs = 0) =>
  row<NameClaim>({ name, holder, sinceMs: 1, by: 'operator:carol', carriedUntilMs })
const served: PlaneHolder = {
  ...({ kind: 'plane', use: 'certificate', joinStrings: 2 } as const),
  ...{ namedAtMs: null, retaken: false, dropped: null },
}
const wanted = { name: 'dns:plane.example', use: 'certificate', named: true, row: null, below: null } as const

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

test('the plane comes back to a name that was dropped and stayed the address of a listener: that is no first time', () => {
  const address = claimed(wanted.name, { ...served, use: 'address', namedAtMs: 1 })
  const taken = takeNames([{ ...wanted, row: address }], by, nowMs)
  assert.ok(taken.kind === 'part')
  const [write] = taken.part.writes
  assert.ok(write?.put === 'name-claim' && write.value.holder.kind === 'plane')
  assert.equal(returnedAtMs({ ...write.value, holder: write.value.holder }), nowMs)
})

test('a name that the plane has already is only read, so that a drop meanwhile wins the race', () => {
  const taken = takeNames([{ ...wanted, row: claimed(wanted.name, served) }], by, nowMs)
  assert.ok(taken.kind === 'part')
  assert.deepEqual([taken.part.reads.length, taken.part.writes.length], [1, 0])
})

test('a name of a node, and one that a leaf still carries, are not the plane’s to take', () => {
  const node = { kind: 'node', node: 'db-1', derived: false } as const
  const registered = claimed(wanted.name, node)
  const carried = claimed(wanted.name, { kind: 'nobody' }, nowMs + 1)
  for (const claim of [registered, carried])
    assert.deepEqual(takeNames([{ ...wanted, row: claim }], by, nowMs), {
      ...{ kind: 'held', name: wanted.name, claim: claim.value },
    })
  assert.equal(takeNames([{ ...wanted, row: carried }], by, nowMs + 1).kind, 'part')
  const wildcard = { ...wanted, name: 'dns:*.example', named: false }
  for (const { value: below } of [registered, carried])
    assert.deepEqual(takeNames([{ ...wildcard, below }], by, nowMs), {
      kind: 'held',
      name: wildcard.name,
      claim: below,
    })
})

const isOfPlaneRow = (name: string, sinceMs: number, namedAtMs: number | null) => ({
  value: { ...claimed(name, served).value, sinceMs, holder: { ...served, namedAtMs } },
  version: 1,
})

test('a plane that comes back to a name is called by it from then on, also beside names of a release that did not say', () => {
  type Times = readonly [sinceMs: number, namedAtMs: number | null]
  const called = (mine: Times, ...others: readonly Times[]) => calledBeside([], mine, ...others)
  const calledBeside = (configured: readonly string[], mine: Times, ...others: readonly Times[]) => {
    const verdict = decideCalled({
      row: isOfPlaneRow('dns:a.example', ...mine),
      others: others.map((one) => isOfPlaneRow('dns:b.example', ...one).value),
      configured: ['dns:a.example', ...configured],
      ...{ by, nowMs },
    })
    if (verdict.kind === 'unchanged') return null
    const [write] = verdict.change.writes
    return write?.put === 'name-claim' && write.value.holder.kind === 'plane' ? write.value.holder.namedAtMs : null
  }
  assert.equal(called([1, 1]), null)
  assert.equal(called([1, 1], [1, null]), null, 'the second name of a configuration')
  assert.equal(called([1, 1], [5, 5]), nowMs)
  assert.equal(called([1, 6], [5, 5]), null, 'started again with the same name')
  assert.equal(called([1, null], [1, 1]), nowMs, 'the second name has become the first')
  assert.equal(called([1, 1], [5, nowMs + 3]), nowMs + 4, 'a clock that was ahead')
  assert.equal(called([1, null], [5, null]), nowMs)
  // Written down after an upgrade: a later change of the name, and back, has to be noticed.
  assert.equal(called([1, null]), 1)
  assert.equal(called([5, null], [1, null]), 5)
  assert.equal(calledBeside(['dns:b.example'], [1, null], [1, null]), 1)
  assert.equal(called([1, null], [1, null]), nowMs, 'either may have been in the URLs, and one is not configured now')
  const came = isOfPlaneRow('dns:a.example', 1, 6).value
  assert.deepEqual([returnedAtMs(came), calledSinceMs(came)], [6, 6])
  const stayed = isOfPlaneRow('dns:a.example', 1, 1).value
  assert.deepEqual([returnedAtMs(stayed), calledSinceMs(stayed)], [null, 1])
  assert.equal(returnedAtMs(isOfPlaneRow('dns:a.example', 1, null).value), null)
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

test('a name that the plane took and must not serve is given back; one that it had before is dropped again', () => {
  const giveBack = (holder: NameHolder) => {
    const verdict = decideGiveBack({ row: claimed(wanted.name, holder, 7), why: 'a node has it', by, nowMs })
    if (verdict.kind === 'unchanged') return null
    const [write] = verdict.change.writes
    assert.ok(write?.put === 'name-claim' && write.value.carriedUntilMs === 7)
    return write.value.holder
  }
  assert.deepEqual(giveBack(served), { kind: 'nobody' })
  const again = { ...served, retaken: true }
  assert.deepEqual(giveBack(again), { ...again, dropped: { atMs: nowMs, by: by.actor } })
  assert.equal(giveBack({ kind: 'node', node: 'db-1', derived: false }), null)
})
