// Random lives, decided by the real decisions and journaled in two chains by clocks that are wrong. Rows that are the true
// result are never fenced; rows that were set back are, wherever the order of the entries is certain.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { Node } from '#domain/core/node.ts'
import { differenceOfNode, reopeningTypes } from './rows-and-journal.ts'
import { profile, step } from '../../../test/fakes/life-events.ts'
import { startLife, type LifeEvent } from '../../../test/fakes/life.ts'
import { minute, noonMs } from '../../../test/fakes/sample-rows.ts'

const node = fc.constantFrom('n1', 'n2')
/** What shuts a node out and lets it in again, more often than in other lives. */
const turn: fc.Arbitrary<readonly LifeEvent[]> = fc.tuple(
  fc.record({
    do: fc.constantFrom('register' as const, 'quarantine' as const, 'release' as const, 'revoke' as const),
    node,
  }),
)
const repair: fc.Arbitrary<readonly LifeEvent[]> = fc
  .record({ node, key: fc.constantFrom('r1', 'r2', 'r3', 'r4') })
  .map(({ node: id, key }) => [
    { do: 'bundle', node: id },
    { do: 'recover', node: id, key, with: 'repair', behind: 0, live: 'nobody' },
    { do: 'evidence', node: id, ok: true },
    { do: 'release', node: id },
    { do: 'use', on: 0 },
  ])
const happening = fc.oneof(
  { weight: 3, arbitrary: step },
  { weight: 2, arbitrary: turn },
  { weight: 1, arbitrary: repair },
)
/** Which replica writes it, and how far its clock is off just then. */
const written = (mostMs: number) =>
  fc.record({ events: happening, chain: fc.constantFrom('one', 'two'), offMs: fc.integer({ min: 0, max: mostMs }) })

type Seen = (node: Node, entries: readonly JournalEntry[]) => void

const live = (mostOffMs: number, runs: number, seen: Seen): void =>
  fc.assert(
    fc.property(profile, fc.array(written(mostOffMs), { minLength: 5, maxLength: 60, size: 'max' }), (rules, story) => {
      const life = startLife(rules, noonMs)
      const entries: JournalEntry[] = []
      for (const { events, chain, offMs } of story) {
        for (const event of events) {
          const change = life.plan(event)
          if (change === null || life.table.commit(change) === 'lost-race') continue
          for (const draft of change.entries) {
            const sequence = entries.length + 1
            entries.push({ ...draft, atMs: draft.atMs + offMs, chain, sequence } as JournalEntry)
          }
          for (const { value } of life.table.all('node'))
            seen(
              value,
              entries.filter((entry) => entry.node === value.id),
            )
        }
      }
    }),
    { numRuns: runs },
  )

const runs = process.env['MUSTER_LONG'] === '1' ? 20_000 : 300

test('R3: no row that is the true result is fenced, however wrong the clocks of two replicas are', () => {
  let shut = 0
  live(3 * 24 * 60 * minute, runs, (value, entries) => {
    const difference = differenceOfNode(value, entries, true)
    assert.ok(difference === null || !difference.lax, difference?.why ?? '')

    const { membership, epoch } = value
    if (membership.kind !== 'revoked' && membership.kind !== 'quarantined') return
    const reopened = entries.some((entry) => entry.epoch === epoch && reopeningTypes.includes(entry.type))
    if (reopened) return
    shut++
    const back = { ...value, membership: { kind: 'active' } } as Node
    assert.equal(differenceOfNode(back, entries, true)?.lax, true, 'a row that was set back is fenced')
  })
  assert.ok(shut > 0)
})

test('no row that is the true result differs while clocks are less than a minute apart', () => {
  live(minute - 1, runs, (value, entries) => assert.equal(differenceOfNode(value, entries, true), null))
})
