import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pages } from './pages.ts'

const list = (count: number) => {
  const all = Array.from({ length: count }, (_, at) => at)
  const asked: (number | null)[] = []
  const read = async (after: number | null, limit: number): Promise<readonly number[]> => {
    asked.push(after)
    return all.slice(after === null ? 0 : after + 1).slice(0, limit)
  }
  return { asked, reading: { limit: 3, read, placeOf: (last: number) => last } }
}

const collected = async (count: number) => {
  const { asked, reading } = list(count)
  const found: (readonly number[])[] = []
  for await (const page of pages(reading)) found.push(page)
  return { asked, found }
}

test('every row comes once, and a page that is not full is the last', async () => {
  assert.deepEqual(await collected(7), { asked: [null, 2, 5], found: [[0, 1, 2], [3, 4, 5], [6]] })
})

test('a full last page is followed by one more question, and no empty page is given', async () => {
  assert.deepEqual(await collected(3), { asked: [null, 2], found: [[0, 1, 2]] })
  assert.deepEqual(await collected(0), { asked: [null], found: [] })
})

test('a reader that stops asks for nothing more', async () => {
  const { asked, reading } = list(7)
  for await (const page of pages(reading)) if (page.includes(1)) break
  assert.deepEqual(asked, [null])
})

test('with timers, other work gets a turn between two pages and nowhere else', async () => {
  const { reading } = list(7)
  let turns = 0
  const timers = { soon: (run: () => void) => (turns++, void setImmediate(run)) }
  for await (const page of pages({ ...reading, timers })) assert.ok(page.length > 0)
  assert.equal(turns, 2)
})
