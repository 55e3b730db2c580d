import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decided, entry, type Attribution } from '#domain/core/change.ts'
import { refuse } from '#domain/core/refusal.ts'
import { openFeed } from './feed.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import { commitDecision, commitOnce, retryLostRaces } from './commit-decision.ts'

const by: Attribution = { actor: 'operator:ada', source: null, correlation: null }
const change = { reads: [], writes: [], entries: [entry(by, 1, 'domain.changed', {})] } as const
const committed: Committed = { kind: 'committed', origin: 'here', writes: [], entries: [] }

const storeThatLoses = (races: number): Pick<Store, 'commit'> & { commits: number } => ({
  commits: 0,
  async commit() {
    this.commits++
    return this.commits <= races ? 'lost-race' : committed
  },
})

test('the loser of a race reads and decides again, and the feed publishes the change once', async () => {
  const store = storeThatLoses(3)
  const feed = openFeed()
  let reads = 0
  let published = 0
  feed.subscribe('metrics', () => void published++)
  const outcome = await commitDecision({ store, feed }, async () => ({ ...decided(change), snapshot: ++reads }))
  assert.deepEqual(outcome, { kind: 'committed', change, committed, snapshot: 4 })
  assert.equal(published, 1)
})

test('a refusal commits nothing and is not published', async () => {
  const store = storeThatLoses(0)
  const feed = openFeed()
  feed.subscribe('metrics', () => assert.fail('nothing was committed'))
  assert.deepEqual(await commitDecision({ store, feed }, async () => refuse('NODE_REVOKED')), refuse('NODE_REVOKED'))
  assert.equal(store.commits, 0)
})

test('after eight lost races the caller gets a retry time', async () => {
  const store = storeThatLoses(1000)
  const outcome = await commitDecision({ store, feed: openFeed() }, async () => decided(change))
  assert.equal(outcome.kind, 'refused')
  assert.equal(outcome.kind === 'refused' && outcome.code, 'BUSY')
  assert.equal(outcome.kind === 'refused' && outcome.retryAfterMs, 1000)
  assert.equal(store.commits, 8)
})

test('a verdict that decides nothing is the answer as it is', async () => {
  const store = storeThatLoses(0)
  const same = { kind: 'unchanged', was: 7 } as const
  assert.equal(await commitDecision({ store, feed: openFeed() }, async () => same), same)
  assert.equal(store.commits, 0)
})

test('a flow may set how often it decides, and what it answers when that was not enough', async () => {
  const store = storeThatLoses(1000)
  const busy = refuse('UNAVAILABLE', 'too many at once')
  const tries = { tries: 3, onBusy: () => busy }
  assert.equal(await commitDecision({ store, feed: openFeed() }, async () => decided(change), tries), busy)
  assert.equal(store.commits, 3)
})

test('an attempt that has to read what it has caused is repeated like one that lost a race', async () => {
  const outcomes = ['lost-race', 'decide-again', 'done'] as const
  let tried = 0
  const attempt = async () => outcomes[tried++] ?? 'done'
  assert.equal(await retryLostRaces({ tries: 3, onBusy: () => 'busy' as const }, attempt), 'done')
  tried = 0
  assert.equal(await retryLostRaces({ tries: 2, onBusy: () => 'busy' as const }, attempt), 'busy')
})

test('one commit is published if it came through, and only then', async () => {
  const feed = openFeed()
  let published = 0
  feed.subscribe('metrics', () => void published++)
  const store = storeThatLoses(1)
  assert.equal(await commitOnce({ store, feed }, change), 'lost-race')
  assert.equal(published, 0)
  assert.equal(await commitOnce({ store, feed }, change), committed)
  assert.equal(published, 1)
})
