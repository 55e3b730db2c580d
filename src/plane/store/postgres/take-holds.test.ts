import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hold } from '#plane/store/contract/replicas.ts'
import { decideHold, type HoldFacts } from './take-holds.ts'

const theirs: Hold = { replica: 2, number: 40, instance: 'agent-a' }
const facts: HoldFacts = {
  self: 1,
  session: { number: 7, instance: 'agent-b' },
  over: null,
  hold: theirs,
  leased: new Set([1, 2]),
}

test('a channel that another replica holds under its lease stays there', () => {
  assert.equal(decideHold(facts), theirs)
})

test('a channel without a hold is taken', () => {
  assert.equal(decideHold({ ...facts, hold: null }), 'held')
})

test('a channel of this very replica is taken: it knows its own sessions', () => {
  assert.equal(decideHold({ ...facts, hold: { ...theirs, replica: 1 } }), 'held')
})

test('the same process moves its channel without asking', () => {
  assert.equal(decideHold({ ...facts, session: { number: 7, instance: 'agent-a' } }), 'held')
})

test('two agents that say nothing of their process are not taken for the same', () => {
  const silent = { ...theirs, instance: null }
  assert.equal(decideHold({ ...facts, session: { number: 7, instance: null }, hold: silent }), silent)
})

test('what a replica without a lease held is free', () => {
  assert.equal(decideHold({ ...facts, leased: new Set([1]) }), 'held')
})

test('a session that was found silent is replaced, and a newer one is not', () => {
  assert.equal(decideHold({ ...facts, over: theirs }), 'held')
  assert.equal(decideHold({ ...facts, over: { ...theirs, number: 39 } }), theirs)
  assert.equal(decideHold({ ...facts, over: { ...theirs, replica: 3 } }), theirs)
})
