import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causalChain, type StoryEntry } from './explain-story.ts'

const at = (atMs: number, type: StoryEntry['type'], changes: Partial<StoryEntry> = {}): StoryEntry => ({
  type,
  atMs,
  actor: 'node:gpu-001',
  source: '192.0.2.1',
  correlation: null,
  body: {},
  ...changes,
})

const what = (
  entries: readonly StoryEntry[],
  ...rest: Parameters<typeof causalChain> extends [unknown, ...infer R] ? R : never
) => causalChain(entries, ...rest).map((link) => link.what)

test('entries and the events of the agent are in the order of time, each with its episode', () => {
  const story = { correlation: 'episode-1' }
  const chain = causalChain(
    [
      at(1000, 'node.recovery_requested', { ...story, body: { failure_class: 'cert_expired', failed_since: 'noon' } }),
      at(1500, 'node.draining', { actor: 'operator:alice', correlation: 'call-1' }),
      at(2000, 'node.recovered', story),
      at(3000, 'node.confirmed', story),
    ],
    [{ atMs: 500, what: 'renewal failed', correlation: 'episode-1' }],
  )
  assert.deepEqual(
    chain.map(({ atMs, who, correlation }) => [atMs, who, correlation]),
    [
      [500, 'its agent', 'episode-1'],
      [1000, 'node:gpu-001 (192.0.2.1)', 'episode-1'],
      [1500, 'operator:alice (192.0.2.1)', 'call-1'],
      [2000, 'node:gpu-001 (192.0.2.1)', 'episode-1'],
      [3000, 'node:gpu-001 (192.0.2.1)', 'episode-1'],
    ],
  )
  assert.equal(chain[1]?.what, 'it asked to recover: cert_expired since noon')
})

test('where a node was put and what its programs got is part of its history', () => {
  const told = what(
    [
      at(0, 'node.assigned', { body: { vcluster: 'web', was: null } }),
      at(1, 'node.names_added', { body: { names: ['dns:a.example', 'ip:192.0.2.20'] } }),
      at(2, 'program.issued', { body: { output: 'nginx', not_after: 'noon' } }),
      at(3, 'program.ended', { body: { output: 'nginx', why: 'revoked' } }),
    ],
    [],
  )
  assert.deepEqual(told, [
    'put into vCluster web',
    'got names for its programs: a.example, 192.0.2.20',
    'output nginx got a certificate good until noon',
    'certificates of output nginx were denied: revoked',
  ])
})

test('a machine from a copied image is advised to clean the image, and that its token is still valid', () => {
  const body = { code: 'KEY_IN_USE', attempt: 'POST /v1/enroll', detail: null }
  const [told] = what([at(0, 'refused', { body })], [])
  assert.match(told ?? '', /remove the agent's state folder from that; a token it brought is still good$/)
})

test('a caller refused over and over is one link that says how often', () => {
  const refused = (atMs: number): StoryEntry =>
    at(atMs, 'refused', { body: { code: 'NODE_QUARANTINED', attempt: 'GET /v1/nodes/:id/channel', detail: null } })
  assert.deepEqual(what([refused(0), refused(1000), refused(60_000)], []), [
    'refused NODE_QUARANTINED at GET /v1/nodes/:id/channel, 3 times in 60 s',
  ])
})

test('of years of renewals the last is shown, and of a long history its end', () => {
  const renewals = Array.from({ length: 50 }, (_, day) =>
    at(day, 'node.renewed', { body: { not_after: `day ${day}` } }),
  )
  assert.deepEqual(what(renewals, []), ['renewed: a certificate good until day 49'])
  const conditions = Array.from({ length: 50 }, (_, day) =>
    at(day, 'node.condition_raised', { body: { condition: `c${day}`, reason: 'r' } }),
  )
  const told = what(conditions, [], 10)
  assert.deepEqual([told.length, told.at(-1)], [10, 'c49: r'])
})

test('what a node says cannot forge a line', () => {
  const [link] = causalChain([], [{ atMs: 0, what: 'fine\nrevoked: by nobody\u001b[0m', correlation: null }])
  assert.equal(link?.what, 'fine revoked: by nobody [0m')
})

test('entries that say nothing about the node are left out', () => {
  assert.deepEqual(what([at(0, 'alert.raised'), at(1, 'refusals.counted')], []), [])
})

test('the last tasks of a node are told step by step, and older ones are not', () => {
  const tasks = [1, 2, 3, 4].flatMap((nr) => [
    at(nr * 10, 'task.queued', { body: { task: `task_${nr}`, type: 'service' } }),
    at(nr * 10 + 1, 'task.failed', { body: { task: `task_${nr}`, type: 'service', code: 'FAILED', exit_code: 3 } }),
  ])
  const told = what([at(0, 'node.quarantined', { body: { reason: 'odd' } }), ...tasks], [])
  assert.equal(told[0], 'quarantined: odd')
  assert.deepEqual(told.slice(1, 3), [
    'task task_2 (service) was queued',
    'task task_2 (service) failed: FAILED, exit code 3',
  ])
  assert.equal(told.length, 7)
})
