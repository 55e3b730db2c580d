import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { programList, programListEveryMs, type DeniedLeaf } from './program-list.ts'

const day = 24 * 3_600_000
const dueMs = 1_000_000 * programListEveryMs

const denied = (serial: string, atMs: number, untilMs = dueMs + day): DeniedLeaf => ({
  serial,
  atMs,
  untilMs,
  reason: 'unspecified',
})

/** Spread as random ones are. */
const serialOf = (at: number): string => ((at + 1) * 0x9e37_79b1).toString(16)

test('a list is good for the whole time it has to be, from whenever it is fetched', () => {
  for (const afterMs of [0, 1, programListEveryMs - 1]) {
    const nowMs = dueMs + afterMs
    const list = programList({ denied: [], nowMs, goodForMs: 7 * day })
    assert.ok(list.nextUpdateMs >= nowMs + 7 * day)
    assert.ok(list.thisUpdateMs <= nowMs)
    assert.equal(list.number, 1_000_000 * 2 ** 32)
    assert.ok(Number.isSafeInteger(list.number))
  }
})

test('whatever is denied, in whatever order it gets known, the number never goes back and never stands for two lists', () => {
  const step = fc.record({
    waitMs: fc.nat(programListEveryMs),
    atMs: fc.integer({ min: -day, max: day }),
    lastsMs: fc.nat(day),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const all: DeniedLeaf[] = []
      let nowMs = dueMs
      let before = { number: 0, serials: '' }
      for (const { waitMs, atMs, lastsMs } of steps) {
        nowMs += waitMs
        all.push(denied(serialOf(all.length), nowMs + atMs, nowMs + lastsMs))
        const list = programList({ denied: all, nowMs, goodForMs: day })
        const serials = list.entries.map(({ serial }) => serial).join()
        assert.ok(list.number >= before.number)
        assert.ok(list.number > before.number || serials === before.serials)
        before = { number: list.number, serials }
      }
    }),
  )
})

test('of replicas that heard of different denials each makes a list with a number of its own, below that of the whole one', () => {
  const all = ['51f03a', '9c07d2', '3be411', '7a98e7', '04c2b9'].map((serial) => denied(serial, dueMs))
  const numberOf = (heard: readonly DeniedLeaf[]): number =>
    programList({ denied: heard, nowMs: dueMs + 1, goodForMs: day }).number
  const numbers = new Set<number>()
  for (let set = 0; set < 2 ** all.length; set++) {
    const heard = all.filter((_, at) => set & (1 << at))
    numbers.add(numberOf(heard))
    for (const [at, leaf] of all.entries())
      if (!(set & (1 << at))) assert.ok(numberOf([...heard, leaf]) > numberOf(heard))
  }
  assert.equal(numbers.size, 2 ** all.length)
})

test('an expired leaf is on one list that is due after its end, and gone from the next', () => {
  const expired = denied('a', dueMs - day, dueMs + 1)
  const at = (nowMs: number) => programList({ denied: [expired], nowMs, goodForMs: day }).entries.length
  assert.deepEqual([at(dueMs + 2), at(dueMs + programListEveryMs), at(dueMs + 2 * programListEveryMs)], [1, 1, 0])
})

test('a leaf that had ended when it was denied is on no list, unless the clock that said so was ahead', () => {
  const entries = (leaf: DeniedLeaf, nowMs: number): number =>
    programList({ denied: [leaf], nowMs, goodForMs: day }).entries.length
  assert.equal(entries(denied('a', dueMs + 10, dueMs + 10), dueMs + 10), 0)
  assert.equal(entries(denied('a', dueMs + 10, dueMs + 11), dueMs + 10), 1)
  const byWrongClock = denied('a', dueMs + 400 * day, dueMs + day)
  assert.equal(entries(byWrongClock, dueMs), 1)
})
