import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Holder } from '#plane/store/contract/replicas.ts'
import { decideClaim, type ClaimFacts } from './claim-holders.ts'

const theirs: Holder = { replica: 2, number: 40, instance: 'agent-a' }
const facts: ClaimFacts = {
  self: 1,
  session: { number: 7, instance: 'agent-b' },
  over: null,
  holder: theirs,
  leased: new Set([1, 2]),
}

test('a channel that another replica holds under its lease stays there', () => {
  assert.equal(decideClaim(facts), theirs)
})

test('a channel without a holder is claimed', () => {
  assert.equal(decideClaim({ ...facts, holder: null }), 'claimed')
})

test('a channel of this very replica is claimed: it knows its own sessions', () => {
  assert.equal(decideClaim({ ...facts, holder: { ...theirs, replica: 1 } }), 'claimed')
})

test('the same process moves its channel without asking', () => {
  assert.equal(decideClaim({ ...facts, session: { number: 7, instance: 'agent-a' } }), 'claimed')
})

test('two agents that say nothing of their process are not taken for the same', () => {
  const silent = { ...theirs, instance: null }
  assert.equal(decideClaim({ ...facts, session: { number: 7, instance: null }, holder: silent }), silent)
})

test('what a replica without a lease held is free', () => {
  assert.equal(decideClaim({ ...facts, leased: new Set([1]) }), 'claimed')
})

test('a session that was found silent is replaced, and a newer one is not', () => {
  assert.equal(decideClaim({ ...facts, over: theirs }), 'claimed')
  assert.equal(decideClaim({ ...facts, over: { ...theirs, number: 39 } }), theirs)
  assert.equal(decideClaim({ ...facts, over: { ...theirs, replica: 3 } }), theirs)
})
