import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isoTime } from '#platform/clock.ts'
import type { NodeView } from '#wire/node/node-api.ts'
import { nodeColumns } from './node-columns.ts'

const nowMs = 1_800_000_000_000
const day = 24 * 3600 * 1000

const node: NodeView = {
  id: 'gpu-001',
  state: 'active',
  since: isoTime(nowMs),
  profile: 'gpu-cloud',
  epoch: 1,
  assurance: 'token',
  vcluster: null,
  scheduling: { state: 'unavailable', reasons: [] },
  allocations: 0,
  cert_not_after: isoTime(nowMs + day - 1000),
  channel_open: true,
  last_seen: isoTime(nowMs),
  conditions: [],
  recoverable: { proven: true, why: 'rehearsed' },
}

const row = (changes: Partial<NodeView>): string[] =>
  nodeColumns(nowMs)
    .filter(({ wide }) => wide !== true)
    .map(({ cell }) => cell({ ...node, ...changes }))
    .map((cell) => (typeof cell === 'string' ? cell : cell.text))

test('an active node reads as its name, state, profile, what is left of its certificate, and when it was seen', () => {
  assert.deepEqual(row({}), ['gpu-001', 'active', 'gpu-cloud', '', 'yes', '23h 59m', 'now', ''])
})

test('a node in a vCluster says which', () => {
  assert.equal(row({ vcluster: 'training' })[3], 'training')
})

test('a node that fell silent, one that never came, and one whose certificate is over', () => {
  const silent = { channel_open: false, last_seen: isoTime(nowMs - 200_000) }
  assert.deepEqual(row(silent).slice(4, 7), ['no', '23h 59m', '3m ago'])
  const registered = { state: 'registered', cert_not_after: null, channel_open: false, last_seen: null } as const
  assert.deepEqual(row(registered), ['gpu-001', 'registered', 'gpu-cloud', '', 'no', 'none', 'never', ''])
  assert.equal(row({ cert_not_after: isoTime(nowMs - 2 * day) })[5], 'expired 2d ago')
})

test('what keeps work away stands beside the state, and conditions end the line', () => {
  const condition = { name: 'clock_skew', since: isoTime(nowMs), reason: 'x', evidence: {} } as const
  const shown = row({ conditions: [condition], scheduling: { state: 'draining', reasons: [] } })
  assert.deepEqual([shown[1], shown[7]], ['active, draining', 'clock_skew'])
})
