import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EntryType, JournalEntry } from './journal-entry.ts'
import type { Membership, Node } from './node.ts'
import { differenceOfNode } from './rows-and-journal.ts'

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
  assert.notEqual(differenceOfNode(row('active', 1), entries, true), null)
  const later = [said('node.quarantined', 1, 200_000), said('node.released', 1, 90_000, 'two')]
  assert.equal(differenceOfNode(row('inactive', 1), later, true)?.lax, true)
})

test('what stands before the base of a pruned journal is unknown, and not different', () => {
  assert.equal(differenceOfNode(row('active', 3), [], false), null)
  assert.notEqual(differenceOfNode(row('active', 3), [], true), null)
})
