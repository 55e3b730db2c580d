import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeDetail } from '#wire/operator-api.ts'
import { overlayLines, schedulingText } from './node-runs-lines.ts'

const session = { number: 1, since: null }
const node = (changes: Partial<NodeDetail>): NodeDetail =>
  ({ overlay: null, vcluster: 'training', sessions: [session], ...changes }) as NodeDetail

test('an agent that is connected and says nothing of what it runs is pointed out, in a vCluster', () => {
  assert.match(overlayLines(node({})).join(), /^not known: .* of the release before\?$/)
  assert.deepEqual(overlayLines(node({ vcluster: null })), [])
  assert.deepEqual(overlayLines(node({ sessions: [] })), [])
})

test('a state that is its own reason is said once', () => {
  assert.equal(schedulingText({ state: 'draining', reasons: ['draining'] }), 'draining')
  assert.equal(schedulingText({ state: 'draining', reasons: ['draining', 'unhealthy'] }), 'draining, unhealthy')
})
