import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeDetail } from '#wire/node/node-api.ts'
import { driftLines, overlayLines, schedulingText } from './node-show.ts'

const session = { number: 1, since: null }
const node = (changes: Partial<NodeDetail>): NodeDetail =>
  ({ membership: 'active', overlay: null, vcluster: 'training', sessions: [session], ...changes }) as NodeDetail

test('an agent that is connected and says nothing of what it runs is pointed out, in a vCluster', () => {
  assert.match(overlayLines(node({})).join(), /^not known: .* of the release before\?$/)
  assert.deepEqual(overlayLines(node({ vcluster: null })), [])
  assert.deepEqual(overlayLines(node({ sessions: [] })), [])
})

test('what a node runs is said as of now only while it is connected, and not at all of an identity that is gone', () => {
  const overlay = { applied: true, config_revision: 7, detail: null, services: [], drift: ['file a: changed'] }
  const told = (changes: Partial<NodeDetail>): string[] => {
    const it = node({ overlay, ...changes })
    return [...overlayLines(it), ...driftLines(it)]
  }
  assert.deepEqual(told({}), ['applied, configuration 7', 'file a: changed'])
  assert.match(told({ sessions: [] })[0] ?? '', /^what it said last/)
  for (const membership of ['revoked', 'registered'] as const) assert.deepEqual(told({ membership, sessions: [] }), [])
})

test('a state that is its own reason is said once', () => {
  assert.equal(schedulingText({ state: 'draining', reasons: ['draining'] }), 'draining')
  assert.equal(schedulingText({ state: 'draining', reasons: ['draining', 'unhealthy'] }), 'draining, unhealthy')
})
