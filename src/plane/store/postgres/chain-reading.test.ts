import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import { readChain, type ChainRow, type Position } from './chain-reading.ts'

/** Commits with so many entries each, from sequence 1 on. */
const chainOf = (sizes: readonly number[]): ChainRow[] => {
  let sequence = 0
  return sizes.flatMap((size, commit) =>
    Array.from({ length: size }, (_, index) => {
      sequence += 1
      return {
        sequence,
        bytes: JSON.stringify({ chain: 'C', sequence, operation: `op${commit}-${index}` }),
        hash: new Uint8Array([sequence]),
        touched: index === 0 ? JSON.stringify([['node', `node-${commit}`]]) : null,
      }
    }),
  )
}
const at = (sequence: number): Position => ({
  sequence,
  hash: sequence === 0 ? null : hexOf(new Uint8Array([sequence])),
})
const from = (rows: readonly ChainRow[], position: Position, atMost: number): readonly ChainRow[] =>
  rows.filter((row) => row.sequence >= position.sequence).slice(0, atMost)

const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 })

test('every commit is read once, whole and in order, however few entries are read at a time', () => {
  fc.assert(
    fc.property(sizes, fc.integer({ min: 6, max: 9 }), (each, atMost) => {
      const rows = chainOf(each)
      const read: string[] = []
      for (let position = at(0); position.sequence < rows.length;) {
        const { commits, broken } = readChain(position, from(rows, position, atMost), { atMost, end: rows.length })
        assert.equal(broken, null)
        assert(commits.length > 0)
        read.push(...commits.flatMap(({ touched }) => touched.map(([, key]) => key)))
        position = commits.at(-1)?.position as Position
      }
      assert.deepEqual(
        read,
        each.map((_, commit) => `node-${commit}`),
      )
    }),
  )
})

test('a missing entry is never stepped over, wherever it is missing', () => {
  fc.assert(
    fc.property(sizes, fc.nat(), fc.integer({ min: 2, max: 60 }), (each, pick, atMost) => {
      const whole = chainOf(each)
      const missing = 1 + (pick % whole.length)
      const rows = whole.filter((row) => row.sequence !== missing)
      const { commits, broken } = readChain(at(0), from(rows, at(0), atMost), { atMost, end: whole.length })
      assert(commits.every(({ position }) => position.sequence < missing))
      if (missing < atMost) assert.equal(broken, `the entry ${missing} is missing`)
    }),
  )
})

test('a chain that has another entry where we left it is not followed', () => {
  const rows = chainOf([1, 1, 1])
  const elsewhere = { sequence: 2, hash: 'ff' }
  const { commits, broken } = readChain(elsewhere, from(rows, elsewhere, 9), { atMost: 9, end: 3 })
  assert.deepEqual(commits, [])
  assert.equal(broken, 'what stood at 2 is not there any more')
})
