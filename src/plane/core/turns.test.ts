import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takeTurns, takeTurnsByKey } from './turns.ts'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a task begins when the one before it has ended, well or not', async () => {
  const inTurn = takeTurns()
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const begun: number[] = []
  const results = [
    inTurn(() => (begun.push(1), first.promise)),
    inTurn(() => (begun.push(2), second.promise)),
    inTurn(async () => (begun.push(3), 'third')),
  ]
  await settled()
  assert.deepEqual(begun, [1])
  first.reject(new Error('no disk'))
  await assert.rejects(results[0] ?? Promise.resolve(), /no disk/)
  await settled()
  assert.deepEqual(begun, [1, 2])
  second.resolve('second')
  assert.deepEqual(await Promise.all(results.slice(1)), ['second', 'third'])
})

test('tasks of different keys do not wait for each other', async () => {
  const inTurn = takeTurnsByKey()
  const held = Promise.withResolvers<void>()
  const first = inTurn('a', () => held.promise)
  assert.equal(await inTurn('b', async () => 'b'), 'b')
  let begun = false
  const second = inTurn('a', async () => void (begun = true))
  await settled()
  assert.equal(begun, false)
  held.resolve()
  await Promise.all([first, second])
  assert.equal(begun, true)
})
