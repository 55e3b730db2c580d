import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Change, Write } from '#domain/core/change.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { openPublishedRows, type Awaited } from './published-rows.ts'

/** A row whose value says which version it is. */
const write = (version: number, name = 'p'): Write => ({
  put: 'profile',
  value: { name, version } as unknown as Profile,
})
const versionOf = (published: Write | undefined): number =>
  ((published as Write).value as unknown as { version: number }).version
const change = (after: number): Change =>
  ({
    reads: [{ row: 'profile', key: 'p', version: after - 1 }],
    writes: [write(after)],
    entries: [],
  }) as unknown as Change
const committed = (version: number): Committed => ({
  kind: 'committed',
  origin: 'here',
  writes: [write(version)],
  entries: [],
})
const found = (version: number) => ({ key: 'p', version, write: write(version) })

test('a commit that is answered after a newer row was published does not bring the older one back', () => {
  const rows = openPublishedRows()
  const late = rows.awaited(change(4))
  rows.beginReading()
  assert.equal(versionOf(rows.newest(found(5))), 5)
  rows.endReading()
  assert.equal(versionOf(late.committed(committed(4)).writes[0]), 5)
})

test('a row that was read before a commit was answered here is not published after it', () => {
  const rows = openPublishedRows()
  const ours = rows.awaited(change(6))
  rows.beginReading()
  ours.committed(committed(6))
  assert.equal(versionOf(rows.newest(found(5))), 6)
  rows.endReading()
})

test('other rows of the same commit are published as they were written', () => {
  const rows = openPublishedRows()
  const ours = rows.awaited(change(6))
  rows.beginReading()
  rows.newest({ key: 'q', version: 9, write: write(9, 'q') })
  rows.endReading()
  assert.equal(versionOf(ours.committed(committed(6)).writes[0]), 6)
})

test('in any order of answers and readings, a row is never published older than before', () => {
  const steps = fc.array(fc.constantFrom('commit', 'answer', 'read', 'tell'), { maxLength: 60 })
  fc.assert(
    fc.property(steps, (order) => {
      const rows = openPublishedRows()
      const published: number[] = []
      let newest = 1
      /** Committed in the database, not answered yet. */
      let unanswered: { readonly version: number; readonly awaited: Awaited }[] = []
      let reading: number | null = null
      for (const step of order) {
        if (step === 'commit') {
          newest += 1
          // Every other version is another replica's.
          if (newest % 2 === 0) unanswered.push({ version: newest, awaited: rows.awaited(change(newest)) })
        } else if (step === 'read') {
          rows.beginReading()
          reading = newest
        } else if (step === 'tell') {
          if (reading === null) continue
          published.push(versionOf(rows.newest(found(reading))))
          rows.endReading()
          reading = null
        } else {
          // A replica's own commits are answered in their order.
          const [first] = unanswered
          if (first === undefined) continue
          unanswered = unanswered.slice(1)
          published.push(versionOf(first.awaited.committed(committed(first.version)).writes[0]))
        }
      }
      assert.deepEqual(
        published,
        published.toSorted((one, other) => one - other),
      )
    }),
  )
})
