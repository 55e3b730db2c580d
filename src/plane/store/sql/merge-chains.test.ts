import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newestOf, oldestFirst } from './merge-chains.ts'

const row = (chain: string, sequence: number, operation: string) => ({ chain, sequence, operation })

const story = fc
  .array(fc.record({ chain: fc.constantFrom('A', 'B', 'C'), operation: fc.stringMatching(/^[0-9]{3}$/) }))
  .map((drafts) => {
    const ends = new Map<string, number>()
    return drafts.map(({ chain, operation }) => {
      const sequence = (ends.get(chain) ?? 0) + 1
      ends.set(chain, sequence)
      return row(chain, sequence, operation)
    })
  })

test('chains are put together by time', () => {
  const rows = [row('A', 1, '010'), row('A', 2, '030'), row('B', 7, '020'), row('B', 8, '040')]
  const operations = (some: readonly { operation: string }[]) => some.map(({ operation }) => operation)
  assert.deepEqual(operations(oldestFirst(rows, 3)), ['010', '020', '030'])
  assert.deepEqual(operations(newestOf(rows, 3)), ['020', '030', '040'])
})

test('a chain is never published against its own order, whatever its clock did', () => {
  fc.assert(
    fc.property(story, fc.integer({ min: 1, max: 20 }), (rows, most) => {
      for (const page of [oldestFirst(rows, most), newestOf(rows, most)]) {
        assert.equal(page.length, Math.min(most, rows.length))
        for (const chain of ['A', 'B', 'C']) {
          const sequences = page.filter((each) => each.chain === chain).map(({ sequence }) => sequence)
          assert.deepEqual(
            sequences,
            sequences.map((_, at) => (sequences[0] as number) + at),
          )
        }
      }
      // What is taken of a chain is its beginning, or its end.
      for (const { chain } of rows) {
        const all = rows.filter((each) => each.chain === chain)
        const first = oldestFirst(rows, most).filter((each) => each.chain === chain)
        const last = newestOf(rows, most).filter((each) => each.chain === chain)
        assert.deepEqual(first, all.slice(0, first.length))
        assert.deepEqual(last, all.slice(all.length - last.length))
      }
    }),
  )
})
