import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { openFeed } from '#plane/core/feed.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openOperatorAuthn } from './operator-key.ts'

const key = { id: 'k1', name: 'anna', role: 'operator', revokedAtMs: null, expiresAtMs: null } as unknown as OperatorKey
const authorization = `Bearer muster_key_${'a'.repeat(43)}`
const other = `Bearer muster_key_${'b'.repeat(43)}`

const setUp = (expiresAtMs: number | null = null) => {
  const clock = manualClock(1_000_000)
  const feed = openFeed()
  let reads: 'work' | 'fail' = 'work'
  const get = async () => {
    if (reads === 'fail') throw new StoreFault('the store cannot be read', 'gone')
    return { value: { ...key, expiresAtMs }, version: 1 }
  }
  const book = { grants: async () => true }
  const operators = openOperatorAuthn({ get } as unknown as Pick<Store, 'get'>, book, clock, feed)
  const kindOf = async (given: string, cutOff: boolean): Promise<string> => {
    try {
      return (await operators.byKey(given, 'here', cutOff)).kind
    } catch (error) {
      assert.ok(error instanceof StoreFault)
      return 'fault'
    }
  }
  return { clock, feed, operators, kindOf, fail: () => void (reads = 'fail') }
}

test('L4: while the store cannot be read, a key that was looked up before may cut off, and nothing else; an unseen key may not', async () => {
  const { kindOf, fail } = setUp()
  assert.equal(await kindOf(authorization, false), 'operator')
  fail()
  assert.equal(await kindOf(authorization, true), 'operator')
  assert.equal(await kindOf(authorization, false), 'fault')
  assert.equal(await kindOf(other, true), 'fault')
})

test('L4: a key is remembered for 15 minutes since it was last looked up, and not beyond its revocation', async () => {
  const { clock, kindOf, fail } = setUp()
  assert.equal(await kindOf(authorization, false), 'operator')
  fail()
  clock.advance(15 * 60_000)
  assert.equal(await kindOf(authorization, true), 'operator', 'using it must not prolong it')
  clock.advance(1)
  assert.equal(await kindOf(authorization, true), 'fault')

  const revoked = setUp()
  assert.equal(await revoked.kindOf(authorization, false), 'operator')
  revoked.fail()
  const entry = { type: 'operator_key.revoked', body: { key_id: 'k1' } } as unknown as JournalEntry
  const stored = { cursor: '' as never, bytes: '', hash: '', entry }
  revoked.feed.publish({ kind: 'committed', origin: 'elsewhere', writes: [], entries: [stored] })
  assert.equal(await revoked.kindOf(authorization, true), 'fault')
})

test('a key that has expired is refused with its own code, also where it is only remembered', async () => {
  const { clock, operators, kindOf, fail } = setUp(1_000_000 + 60_000)
  assert.equal(await kindOf(authorization, false), 'operator')
  clock.advance(60_000)
  const refused = await operators.byKey(authorization, 'here', false)
  assert.ok(refused.kind === 'refused')
  assert.deepEqual([refused.code, refused.detail], ['OPERATOR_KEY_EXPIRED', 'at 1970-01-01T00:17:40.000Z'])
  fail()
  assert.equal(await kindOf(authorization, true), 'refused')
})
