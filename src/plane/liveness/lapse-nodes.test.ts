import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Change } from '#domain/core/change.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { domainRow, nodeRow, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { lapseAbsent, raiseOverdue } from './lapse-nodes.ts'
import { openPresence } from './presence.ts'

const graceMs = 300_000

const setUp = (kind: 'active' | 'revoked' = 'active') => {
  const clock = manualClock(0)
  const presence = openPresence(clock)
  const commits: Change[] = []
  let finish = (): void => {}
  let duringRead = (): void => {}
  const store = {
    get: async (row: string, key: string) => {
      if (row === 'node') duringRead()
      return row === 'node' ? nodeRow(kind, { id: key }) : domainRow({ livenessGraceMs: graceMs })
    },
    commit: (change: Change): Promise<Committed> => {
      commits.push(change)
      return new Promise((resolve) => {
        finish = () => resolve({ kind: 'committed', origin: 'here', writes: change.writes, entries: [] })
      })
    },
  }
  const elsewhere = { last: new Map<string, number>() as ReadonlyMap<string, number> | 'unknown' }
  const silence = { lastElsewhere: async () => elsewhere.last }
  const core = { store: store as unknown as Store, feed: openFeed(), clock }
  core.feed.subscribe('metrics', ({ writes }) => {
    for (const write of writes) if (write.put === 'node') presence.forget(write.value.id)
  })
  return {
    clock,
    presence,
    commits,
    elsewhere,
    sweep: () => lapseAbsent(core, presence, silence),
    finish: () => finish(),
    beforeDeciding: (run: () => void) => void (duringRead = run),
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a node lapses when it has been away for the grace, and is not awaited any more', async () => {
  const { clock, presence, commits, sweep, finish } = setUp()
  presence.lastHere('a')
  clock.advance(graceMs - 1)
  await sweep()
  assert.deepEqual(commits, [])
  clock.advance(1)
  const swept = sweep()
  await turn()
  assert.deepEqual(
    commits.map(({ unheld }) => unheld),
    ['a'],
  )
  finish()
  await swept
  assert.equal(presence.size(), 0)
})

test('a node whose channel opens while the sweep reads does not lapse, nor one that was here and left again', async () => {
  for (const comesBack of ['opens', 'opens and ends'] as const) {
    const { clock, presence, commits, sweep, beforeDeciding } = setUp()
    presence.lastHere('a')
    clock.advance(graceMs)
    beforeDeciding(() => (comesBack === 'opens' ? presence.forget('a') : presence.lastHere('a')))
    await sweep()
    assert.deepEqual(commits, [], comesBack)
  }
})

test('a node that was on another replica in between does not lapse, and no node does while a replica is silent', async () => {
  const { clock, presence, commits, sweep, elsewhere } = setUp()
  presence.lastHere('a')
  clock.advance(graceMs)
  elsewhere.last = 'unknown'
  await sweep()
  assert.deepEqual([commits, presence.silentMs('a')], [[], graceMs])
  elsewhere.last = new Map([['a', 1000]])
  await sweep()
  assert.deepEqual([commits, presence.silentMs('a')], [[], 0])
})

test('a node that is not active is not awaited', async () => {
  const { clock, presence, commits, sweep } = setUp('revoked')
  presence.lastHere('a')
  clock.advance(graceMs)
  await sweep()
  assert.deepEqual([commits, presence.size()], [[], 0])
})

test('a crowd that left together lapses in parts, so that the sweep is never long', async () => {
  const { clock, presence, commits, sweep } = setUp()
  for (let i = 0; i < 1_200; i++) presence.lastHere(`n-${i}`)
  clock.advance(graceMs)
  void sweep()
  await turn()
  assert.equal(commits.length, 500)
})

test('what is overdue is said of every node, one thing at a time: stuck, expired, or about to expire', async () => {
  const lived = (part: number) => slots({ current: slot('a1', { issuedAtMs: 0, notAfterMs: Math.round(1000 / part) }) })
  const active = (id: string, part: number) =>
    nodeRow('active', { id, membership: { kind: 'active', sinceMs: 0, slots: lived(part) } })
  const stuck = { kind: 'enrolled', sinceMs: -600_000, slots: lived(0.1) } as const
  const nodes = [
    active('due', 0.7),
    active('expiring', 0.8),
    active('expired', 1.2),
    nodeRow('enrolled', { id: 'stuck', membership: stuck }),
  ]
  const raised: string[] = []
  const store = {
    get: async () => domainRow({ stuckEnrollmentMs: 600_000 }),
    nodes: async () => nodes,
    commit: async ({ entries }: Change) => {
      raised.push(...entries.map(({ node, body }) => `${node} ${String(body['condition'])}`))
      return 'lost-race'
    },
  }
  const clock = manualClock(1000)
  const core = { store: store as unknown as Store, feed: openFeed(), clock }
  await raiseOverdue(core, manualTimers(clock))
  assert.deepEqual(raised, ['expiring cert_expiring', 'expired cert_expired', 'stuck stuck_enrollment'])
})
