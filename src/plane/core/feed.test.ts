import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFeed } from './feed.ts'

const committed = { kind: 'committed', origin: 'here', writes: [], entries: [] } as const

test('a subscriber that fails keeps the news from nobody else, and does not fail in silence', () => {
  const feed = openFeed()
  const told: string[] = []
  feed.subscribe(() => void told.push('first'))
  feed.subscribe(() => {
    throw new Error('out of paper')
  })
  feed.subscribe(() => void told.push('last'))
  assert.throws(() => feed.publish(committed), AggregateError)
  assert.deepEqual(told, ['first', 'last'])
})

test('whoever has unsubscribed hears no more', () => {
  const feed = openFeed()
  let told = 0
  const unsubscribe = feed.subscribe(() => void told++)
  feed.publish(committed)
  unsubscribe()
  feed.publish(committed)
  assert.equal(told, 1)
})
