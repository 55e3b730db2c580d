import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inParallel } from './in-parallel.ts'

test('results come in the order of the items, and never more run than allowed', async () => {
  let running = 0
  let most = 0
  const work = async (item: number): Promise<number> => {
    most = Math.max(most, ++running)
    for (let turns = 0; turns < 10 - item; turns++) await Promise.resolve()
    running--
    return item * 2
  }
  assert.deepEqual(await inParallel([1, 2, 3, 4, 5], 2, work), [2, 4, 6, 8, 10])
  assert.equal(most, 2)
})

test('after an error nothing new is begun', async () => {
  const begun: number[] = []
  const work = async (item: number): Promise<void> => {
    begun.push(item)
    await Promise.resolve()
    if (item === 1) throw new Error('one')
  }
  await assert.rejects(inParallel([1, 2, 3, 4, 5, 6], 2, work), /one/)
  assert.ok(begun.length <= 3, String(begun))
})
