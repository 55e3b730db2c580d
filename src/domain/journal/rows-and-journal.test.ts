import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CertificateRow } from '#domain/core/certificate.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import type { Membership, Node } from '#domain/core/node.ts'
import { bannedKeysOf, differenceOfNode, journalActor, restoredDenial, standingRevocation } from './rows-and-journal.ts'

let sequence = 0
const said = (type: EntryType, epoch: number, atMs: number, chain = 'one'): JournalEntry =>
  ({ type, epoch, atMs, chain, sequence: ++sequence }) as JournalEntry
const row = (kind: Membership['kind'], epoch: number): Node => ({ membership: { kind }, epoch }) as Node

test('L8: a row fits the newest entry that says its membership, whatever was said after it', () => {
  const entries = [said('node.registered', 0, 1), said('host.enrolled', 1, 2), said('node.confirmed', 1, 3)]
  const raised = said('alert.raised', 1, 4)
  assert.equal(differenceOfNode(row('active', 1), [...entries, raised], true), null)
  assert.match(
    differenceOfNode(row('revoked', 1), entries, true)?.why ?? '',
    /says revoked, and the journal says active/,
  )
})

test('R3: a row that is let in though the journal has shut it out is lax; one that is shut out is not', () => {
  const entries = [said('node.confirmed', 1, 1), said('host.revoked', 1, 2)]
  assert.equal(differenceOfNode(row('active', 1), entries, true)?.lax, true)
  assert.equal(differenceOfNode(row('registered', 1), entries, true)?.lax, true)
  assert.equal(differenceOfNode(row('quarantined', 1), entries, true)?.lax, false)
  assert.equal(differenceOfNode(row('revoked', 1), entries, true), null)
  assert.equal(differenceOfNode(row('active', 1), [said('host.enrolled', 2, 3)], true)?.lax, true, 'an older epoch')
})

test('entries of two chains within a minute have no known order: either may be the last', () => {
  const entries = [said('node.quarantined', 1, 100_000), said('node.released', 1, 90_000, 'two')]
  assert.equal(differenceOfNode(row('inactive', 1), entries, true), null)
  assert.equal(differenceOfNode(row('quarantined', 1), entries, true), null)
  assert.equal(differenceOfNode(row('active', 1), entries, true)?.lax, false)
})

test('R3: a node that another chain has let in again is alerted and not fenced, however far apart the clocks are', () => {
  for (const [shut, opened, kind] of [
    ['node.quarantined', 'node.released', 'inactive'],
    ['node.repaired', 'node.released', 'inactive'],
    ['host.revoked', 'node.registered', 'registered'],
  ] as const) {
    for (const aheadMs of [-86_400_000, -300_000, -60_001, 0, 60_001, 300_000, 86_400_000]) {
      const entries = [said(shut, 1, 1e9 + aheadMs), said(opened, 1, 1e9, 'two')]
      const name = `${shut} ${aheadMs} ms behind ${opened}`
      assert.notEqual(differenceOfNode(row(kind, 1), entries, true)?.lax, true, name)
      assert.notEqual(differenceOfNode(row(kind, 1), entries.toReversed(), true)?.lax, true, name)
    }
    const oneChain = [said(shut, 1, 2), said(opened, 1, 1)]
    assert.equal(differenceOfNode(row(kind, 1), oneChain, true), null, 'the sequence of a chain is certain')
    const shutAgain = [said(opened, 1, 2), said(shut, 1, 1)]
    assert.equal(differenceOfNode(row(kind, 1), shutAgain, true)?.lax, true, 'the sequence of a chain is certain')
  }
  const returned = [
    said('node.repaired', 2, 400_000),
    said('node.released', 2, 50_000, 'two'),
    said('node.returned', 2, 51_000, 'three'),
  ]
  const difference = differenceOfNode(row('active', 2), returned, true)
  assert.deepEqual([difference?.lax, difference?.entry?.type], [false, 'node.repaired'])
})

test('R3: what other chains said of an epoch before it was ended does not keep a row that was set back from its fence', () => {
  for (const aheadMs of [-86_400_000, 0, 86_400_000]) {
    const entries = [
      said('node.released', 1, 1, 'two'),
      said('host.enrolled', 2, 1000 + aheadMs, 'two'),
      said('node.confirmed', 2, 2000 + aheadMs, 'three'),
      said('host.revoked', 2, 3000),
    ]
    const difference = differenceOfNode(row('active', 2), entries, true)
    assert.deepEqual([difference?.lax, difference?.entry?.type], [true, 'host.revoked'])
  }
})

test('what stands before the base of a pruned journal is unknown, and not different', () => {
  assert.equal(differenceOfNode(row('active', 3), [], false), null)
  assert.notEqual(differenceOfNode(row('active', 3), [], true), null)
})

test('R3: the journal alone says whether a node is revoked; what may have come in either order counts as revoked', () => {
  const told = (type: EntryType, epoch: number, atMs: number, chain = 'one', actor = 'operator:alice') => ({
    ...said(type, epoch, atMs, chain),
    ...{ actor, body: { reason: 'stolen' } },
  })
  const isRevoked = (entries: readonly JournalEntry[]): boolean => standingRevocation(entries) !== null
  const revoked = [told('node.confirmed', 1, 1), told('host.revoked', 1, 2)]
  assert.deepEqual(standingRevocation(revoked), { by: 'operator:alice', reason: 'stolen', atMs: 2 })
  assert.ok(isRevoked([...revoked, told('node.quarantined', 1, 3, 'one', journalActor)]), 'a fence ends nothing')
  assert.ok(isRevoked([...revoked, told('node.confirmed', 1, 900_000, 'two')]), 'nothing has let it in again')
  assert.ok(isRevoked([...revoked, told('node.registered', 1, 3, 'two')]), 'in either order')
  assert.ok(!isRevoked([...revoked, told('node.registered', 1, 900_000, 'two')]))
  assert.ok(!isRevoked([...revoked, told('node.registered', 1, 3)]))
  assert.ok(!isRevoked([...revoked, told('host.enrolled', 2, 4, 'two')]))
  assert.ok(!isRevoked([told('node.confirmed', 1, 1), told('node.quarantined', 1, 2)]))
  assert.ok(!isRevoked([]))
})

test('a revocation has banned the newest certified key and the recovery key it names; before 0.2.1 it named and banned none', () => {
  const last = { spki: 'b'.repeat(64) } as CertificateRow
  const revoked = (body: object) => ({ entry: { ...said('host.revoked', 1, 1), body } as JournalEntry, epoch: 1 })
  assert.deepEqual(bannedKeysOf(revoked({ recovery_key: `SHA256:${'a'.repeat(64)}` }), last), [
    last.spki,
    'a'.repeat(64),
  ])
  assert.deepEqual(bannedKeysOf(revoked({}), last), [last.spki])
  assert.deepEqual(bannedKeysOf(revoked({}), null), [])
  assert.deepEqual(bannedKeysOf({ entry: said('node.quarantined', 1, 1), epoch: 1 }, last), [])
})

test('a denial that is restored has the reason that the revocation named for verifiers, and none that is not one', () => {
  const restored = (body: object) =>
    restoredDenial({ entry: { ...said('host.revoked', 1, 1), body } as JournalEntry, epoch: 1 }, 'n1', [], 0).reason
  assert.equal(restored({ reason: 'stolen', reason_code: 'key-compromise' }), 'key-compromise')
  assert.equal(restored({ reason: 'stolen' }), 'unspecified')
  assert.equal(restored({ reason_code: 'of a later release' }), 'unspecified')
})
