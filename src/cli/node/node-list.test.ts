import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isoTime } from '#platform/clock.ts'
import type { NodeView } from '#wire/node/node-api.ts'
import { nodeRow } from './node-list.ts'
import { plain } from '#cli/kit/print.ts'
import { renderTable } from '#cli/kit/table.ts'

const nowMs = 1_800_000_000_000
const day = 24 * 3600 * 1000

const node: NodeView = {
  id: 'gpu-001',
  membership: 'active',
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

const row = (changes: Partial<NodeView>): string | undefined =>
  renderTable([nodeRow({ ...node, ...changes }, nowMs)], plain)[0]

test('an active node reads as its name, state, profile, what is left of its certificate, and when it was seen', () => {
  assert.equal(row({}), 'gpu-001  active  profile gpu-cloud  cert 23h 59m  seen now')
})

test('a node in a vCluster says which', () => {
  assert.match(row({ vcluster: 'training' }) ?? '', /profile gpu-cloud in training {2}cert/)
})

test('a node that fell silent, one that never came, and one whose certificate is over', () => {
  assert.match(row({ channel_open: false, last_seen: isoTime(nowMs - 200_000) }) ?? '', /seen 3m ago$/)
  const registered = { membership: 'registered', cert_not_after: null, channel_open: false, last_seen: null } as const
  assert.equal(row(registered), 'gpu-001  registered  profile gpu-cloud  cert none  never seen')
  assert.match(row({ cert_not_after: isoTime(nowMs - 2 * day) }) ?? '', /cert expired 2d ago/)
})

test('what is odd about a node ends its line', () => {
  const condition = { name: 'clock_skew', since: isoTime(nowMs), reason: 'x', evidence: {} } as const
  const line = row({ conditions: [condition], scheduling: { state: 'draining', reasons: [] } })
  assert.match(line ?? '', /seen now {2}draining, clock_skew$/)
})
