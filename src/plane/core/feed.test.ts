import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFeed } from './feed.ts'

const committed = { kind: 'committed', origin: 'here', writes: [], entries: [] } as const

test('subscribers act in the order of the list, whatever the order in which they subscribed', () => {
  const feed = openFeed()
  const acted: string[] = []
  feed.subscribe('journal followers', () => void acted.push('followers'))
  feed.subscribe('channels', () => void acted.push('channels'))
  feed.subscribe('deny-list', () => void acted.push('deny-list'))
  feed.subscribe('journal followers', () => void acted.push('more followers'))
  feed.publish(committed)
  assert.deepEqual(acted, ['deny-list', 'channels', 'followers', 'more followers'])
})

test('a subscriber that fails does not keep others from the commit, and its failure is reported', () => {
  const feed = openFeed()
  const told: string[] = []
  feed.subscribe('deny-list', () => void told.push('first'))
  feed.subscribe('deny-list', () => {
    throw new Error('out of paper')
  })
  feed.subscribe('metrics', () => void told.push('last'))
  assert.throws(() => feed.publish(committed), AggregateError)
  assert.deepEqual(told, ['first', 'last'])
})

test('a subscriber that has unsubscribed is not called any more', () => {
  const feed = openFeed()
  let told = 0
  const unsubscribe = feed.subscribe('metrics', () => void told++)
  feed.publish(committed)
  unsubscribe()
  feed.publish(committed)
  assert.equal(told, 1)
})
