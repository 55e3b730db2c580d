import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decided, entry, type Attribution } from '#domain/core/decision.ts'
import { refuse } from '#domain/core/refusal.ts'
import { openFeed } from './feed.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import { commitDecision } from './commit-decision.ts'

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

test('the loser of a race reads and decides again, and the feed hears of it once', async () => {
  const store = storeThatLoses(3)
  const feed = openFeed()
  let reads = 0
  let heard = 0
  feed.subscribe(() => void heard++)
  const outcome = await commitDecision({ store, feed }, async () => ({ ...decided(change), snapshot: ++reads }))
  assert.deepEqual(outcome, { kind: 'committed', change, committed, snapshot: 4 })
  assert.equal(heard, 1)
})

test('a refusal commits nothing and is told to nobody else', async () => {
  const store = storeThatLoses(0)
  const feed = openFeed()
  feed.subscribe(() => assert.fail('nothing was committed'))
  assert.deepEqual(await commitDecision({ store, feed }, async () => refuse('NODE_REVOKED')), refuse('NODE_REVOKED'))
  assert.equal(store.commits, 0)
})

test('after eight lost races the caller is told when to come back', async () => {
  const store = storeThatLoses(1000)
  const outcome = await commitDecision({ store, feed: openFeed() }, async () => decided(change))
  assert.equal(outcome.kind, 'refused')
  assert.equal(outcome.kind === 'refused' && outcome.code, 'BUSY')
  assert.equal(outcome.kind === 'refused' && outcome.retryAfterMs, 1000)
  assert.equal(store.commits, 8)
})
