import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerIssuer } from '#domain/workers/worker-issuer.ts'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { cluster } from '../../../test/fakes/service-accounts.ts'
import { openKeySets } from './key-sets.ts'

const minute = 60_000

const issuerWith = (keys: WorkerIssuer['keys']): WorkerIssuer => ({
  ...{ name: 'east', iss: 'https://cluster.example', aud: 'muster', sub: 's', keys, types: [], vclusters: [] },
  ...{ createdAtMs: 0, createdBy: 'operator:carol', removedAtMs: null },
})

const setUp = () => {
  const east = cluster()
  let published = (): string => east.jwks()
  const clock = manualClock(1_800_000_000_000)
  let fetched = 0
  let away = false
  const keySets = openKeySets({ clock, log: silentLog }, async () => {
    fetched += 1
    if (away) throw new Error('it answered 503')
    return published()
  })
  const issuer = issuerWith({ kind: 'url', url: 'https://cluster.example/jwks', ca: 'PEM' })
  const outcome = async (keyId: string): Promise<string> => {
    const key = await keySets.keyOf(issuer, keyId)
    return typeof key === 'string' ? key : 'found'
  }
  return {
    ...{ east, clock, keySets, issuer, outcome, fetched: () => fetched, setAway: (is: boolean) => void (away = is) },
    publish: (document: string) => void (published = () => document),
  }
}

test('a key set is fetched once for many tokens, and a key that is not known is asked for once a minute', async () => {
  const { east, clock, outcome, fetched } = setUp()
  assert.deepEqual(await Promise.all([outcome(east.keyId), outcome(east.keyId)]), ['found', 'found'])
  assert.equal(await outcome('made up'), 'unknown')
  assert.equal(await outcome('made up too'), 'unknown')
  assert.equal(fetched(), 1)
  east.rotate()
  assert.equal(await outcome(east.keyId), 'unknown')
  clock.advance(minute)
  assert.equal(await outcome(east.keyId), 'found')
  assert.equal(fetched(), 2)
})

test('a withdrawn key is refused with the first token after five minutes, also where the issuer has no key left', async () => {
  for (const document of [cluster().jwks(), '{"keys":[]}']) {
    const { east, clock, keySets, issuer, outcome, publish } = setUp()
    assert.equal(await outcome(east.keyId), 'found')
    publish(document)
    clock.advance(5 * minute)
    assert.equal(await outcome(east.keyId), 'found')
    clock.advance(1)
    assert.deepEqual(await Promise.all([outcome(east.keyId), outcome(east.keyId)]), ['unknown', 'unknown'])
    assert.equal(keySets.stateOf(issuer).trouble, null)
  }
})

test('while a key set cannot be fetched its keys are good for an hour, and none after that', async () => {
  const { east, clock, outcome, keySets, issuer, setAway } = setUp()
  assert.equal(await outcome(east.keyId), 'found')
  setAway(true)
  clock.advance(59 * minute)
  assert.equal(await outcome(east.keyId), 'found')
  clock.advance(2 * minute)
  assert.equal(await outcome(east.keyId), 'away')
  assert.equal(keySets.stateOf(issuer).trouble, 'it answered 503')
  setAway(false)
  clock.advance(minute)
  assert.equal(await outcome(east.keyId), 'found')
  assert.equal(keySets.stateOf(issuer).trouble, null)
})

test('keys that were never fetched are away, and what is no key set is named as such', async () => {
  const { keySets, issuer } = setUp()
  const other = openKeySets({ clock: manualClock(1_800_000_000_000), log: silentLog }, async () => '{"keys":{}}')
  assert.equal(await other.keyOf(issuer, 'k'), 'away')
  assert.match(other.stateOf(issuer).trouble ?? '', /it has no list "keys"/)
  assert.equal((await keySets.look(issuer)).keys, 1)
})

test('keys that an operator gave need no server, and others take their place with the change', async () => {
  const { east, keySets, fetched } = setUp()
  const given = issuerWith({ kind: 'file', document: east.jwks() })
  assert.equal(typeof (await keySets.keyOf(given, east.keyId)), 'object')
  assert.equal(await keySets.keyOf(given, 'other'), 'unknown')
  const replaced = issuerWith({ kind: 'file', document: cluster().jwks() })
  assert.equal(await keySets.keyOf(replaced, east.keyId), 'unknown')
  assert.equal(fetched(), 0)
})
