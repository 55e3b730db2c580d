import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHoldOff } from './hold-off.ts'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a node is held off exactly as long as something is decided about it, and others are not', async () => {
  const holdOff = openHoldOff()
  const { promise, resolve } = Promise.withResolvers<string>()
  const decided = holdOff.during('a', () => promise)
  assert.notEqual(holdOff.over('a'), null)
  assert.equal(holdOff.over('b'), null)
  resolve('revoked')
  assert.equal(await decided, 'revoked')
  await settled()
  assert.equal(holdOff.over('a'), null)
})

test('a decision that fails lets the node go too', async () => {
  const holdOff = openHoldOff()
  await assert.rejects(holdOff.during('a', () => Promise.reject(new Error('disk full'))))
  await settled()
  assert.equal(holdOff.over('a'), null)
})

test('of two decisions at once the last to end lets the node go', async () => {
  const holdOff = openHoldOff()
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const both = [holdOff.during('a', () => first.promise), holdOff.during('a', () => second.promise)]
  let over = false
  void holdOff.over('a')?.then(() => (over = true))
  second.resolve()
  await settled()
  assert.notEqual(holdOff.over('a'), null)
  assert.equal(over, false)
  first.resolve()
  await Promise.all(both)
  await settled()
  assert.deepEqual([holdOff.over('a'), over], [null, true])
})
