import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addresses, addressTurns } from './plane-client.ts'

test('an address is kept while it works, and a new endpoint set is tried from its first address on', () => {
  const turns = addressTurns()
  const before = addresses(['wss://one', 'wss://two'], 'wss://join')
  assert.deepEqual(before, ['wss://one', 'wss://two', 'wss://join'])
  assert.equal(turns.next(before), 'wss://one')
  turns.failed()
  assert.equal(turns.next(before), 'wss://two')
  assert.equal(turns.next(before), 'wss://two')
  const after = addresses(['wss://new'], 'wss://join')
  assert.equal(turns.next(after), 'wss://new')
  turns.failed()
  assert.equal(turns.next(after), 'wss://join')
  turns.failed()
  assert.equal(turns.next(after), 'wss://new')
})
