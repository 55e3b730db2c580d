import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeDetail } from '#wire/node/node-api.ts'
import { driftLines, overlayLines, programLines, schedulingText } from './node-show.ts'

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

test('an upgrade is advised where the agent is too old to run what its vCluster asks for, and nowhere else', () => {
  const overlay = { applied: true, config_revision: 7, detail: null, services: [], drift: [] }
  const told = (agent_version: string | null): string | undefined =>
    overlayLines(node({ overlay, not_reported: ['service web'], agent_version })).at(-1)
  assert.equal(told('0.6.0'), 'service web: not run yet')
  for (const old of ['0.3.1', null]) assert.match(told(old) ?? '', /^service web: not run yet; .* needs an upgrade$/)
})

test('a state that is its own reason is said once', () => {
  assert.equal(schedulingText({ state: 'draining', reasons: ['draining'] }), 'draining')
  assert.equal(schedulingText({ state: 'draining', reasons: ['draining', 'unhealthy'] }), 'draining, unhealthy')
})

test('an output says where it is, until when it is good and for which names; one that is not in place says why', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z')
  const inPlace = {
    ...{ output: 'web', state: 'in_place' as const, serial: 'a1', not_after: '2026-01-01T02:00:00.000Z', why: null },
    ...{ names: ['web.example', '10.0.0.7'], place: '/etc/nginx/tls/web', serial_in_place: 'a1' },
  }
  const failed = {
    ...{ output: 'db', state: 'failed' as const, serial: null, not_after: null, why: 'its agent says: no place' },
    ...{ names: [], place: null, serial_in_place: null },
  }
  assert.deepEqual(programLines({ programs: [inPlace, failed] }, nowMs), [
    'web is in place, /etc/nginx/tls/web  serial a1  expires in 2h (2026-01-01T02:00:00.000Z)  names web.example, 10.0.0.7',
    'db is NOT in place  its agent says: no place',
  ])
  assert.deepEqual(programLines({}, nowMs), [], 'a plane of 0.3')
})
