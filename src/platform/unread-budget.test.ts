import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openUnreadBudget } from './unread-budget.ts'

const limits = { perConnection: 64, free: 16, inAll: 100 }

test('one connection is read until it has its own limit, and again when some of it was read', () => {
  const budget = openUnreadBudget(limits)
  assert.equal(budget.changed(0, 64), true)
  assert.equal(budget.changed(64, 65), false)
  assert.equal(budget.changed(65, 40), true)
})

test('many connections together are kept to what they may have in all, and a small caller never waits for them', () => {
  const budget = openUnreadBudget(limits)
  const greedy = Array.from({ length: 10 }, () => budget.changed(0, 60))
  assert.deepEqual(greedy.slice(0, 3), [true, true, false])
  assert.ok(greedy.slice(2).every((mayBeRead) => !mayBeRead))
  assert.equal(budget.changed(0, 16), true, 'it has sent little')
  assert.equal(budget.changed(60, 50), false, 'there is still too much in all')
  assert.equal(budget.changed(50, 10), true, 'it was read')
})

test('what a closed connection had counts no more', () => {
  const budget = openUnreadBudget(limits)
  for (let at = 0; at < 3; at++) budget.changed(0, 60)
  assert.equal(budget.changed(0, 20), false)
  for (let at = 0; at < 3; at++) budget.changed(60, 0)
  assert.equal(budget.changed(20, 20), true)
})
