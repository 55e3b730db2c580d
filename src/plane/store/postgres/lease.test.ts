import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import type { PgConnection } from '#platform/postgres.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../../test/fakes/manual-timers.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import { openJournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openLease } from './lease.ts'
import { usualPace } from './replica-pace.ts'

const answerMs = 2000

/** A server that takes its time for every answer. */
const setUp = async () => {
  const clock = manualClock(1_000_000)
  let renews: 'renews' | 'no such lease' | 'hangs' = 'renews'
  const connection: PgConnection = {
    async run({ name }) {
      clock.advance(answerMs)
      if (name === 'lease-renew' && renews === 'hangs') return new Promise(() => {})
      return { rows: [{ number: 7 }], count: name === 'lease-renew' && renews !== 'renews' ? 0 : 1 }
    },
    exec: async () => {},
    onNotification: () => {},
    onWarning: () => {},
    onEnd: () => {},
    ended: false,
    destroy: () => {},
    end: async () => {},
  }
  const lease = await openLease(
    { clock, timers: manualTimers(clock), log: silentLog },
    {
      access: { connect: async () => connection },
      witness: openJournalWitness(),
      schema: { has: () => true, learn: () => {} },
    },
    { name: 'test', version: '0.0.0', pace: usualPace, clockToleranceMs: Infinity },
  )
  return { clock, lease, server: (now: typeof renews) => void (renews = now) }
}

test('a lease is counted from when it was asked for: while the answer was on its way others have counted already', async () => {
  const { clock, lease } = await setUp()
  clock.advance(usualPace.leaseMs - answerMs - 1)
  assert.equal(lease.self(), 7)
  clock.advance(1)
  assert.equal(lease.self(), null)
})

test('a renewal is counted from when it was sent, and not from its answer', async () => {
  const { clock, lease } = await setUp()
  await lease.confirmed(async () => {})
  clock.advance(usualPace.leaseMs - answerMs - 1)
  assert.equal(lease.self(), 7)
  clock.advance(1)
  assert.equal(lease.self(), null)
})

test('what was seen counts only once a write after it is confirmed: a server that was given up shows what was', async () => {
  const { clock, lease, server } = await setUp()
  assert.equal(await lease.confirmed(async () => 'seen'), 'seen')
  server('hangs')
  const unconfirmed = assert.rejects(lease.confirmed(async () => 'seen'))
  clock.advance(usualPace.answerWithinMs)
  await unconfirmed
  server('no such lease')
  await assert.rejects(
    lease.confirmed(async () => 'seen'),
    StaleReplica,
  )
})
