import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openAbsences } from './absences.ts'
import { openPresence } from './presence.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'

const setUp = async (count: number) => {
  const clock = manualClock(0)
  const presence = openPresence(clock)
  const sole = oneReplica()
  const sessions = openSessionRegistry(clock, sole)
  const store = { absent: ['a', 'b'], looks: 0, broken: false }
  let lead: (fencingToken: FencingToken | null) => void = () => {}
  const absences = await openAbsences(clock, {
    ...{ presence, sessions },
    replicas: {
      count: () => count,
      onLeadership: (run) => void (lead = run),
      holds: {
        ...sole.holds,
        async absent() {
          store.looks++
          if (store.broken) throw new Error('no connection')
          return store.absent
        },
      },
    },
  })
  const away = (): (number | null)[] => ['a', 'b', 'c'].map((node) => presence.silentMs(node))
  return { clock, sessions, store, absences, away, lead: (fencingToken: FencingToken | null) => lead(fencingToken) }
}

test('a node that is away at the start counts from there; channels on other replicas are noticed at the next look', async () => {
  const { clock, store, absences, away } = await setUp(3)
  clock.advance(2000)
  await absences.refresh()
  assert.deepEqual([store.looks, away()], [1, [2000, 2000, null]])
  store.absent = ['b', 'c']
  clock.advance(1000)
  await absences.refresh()
  assert.deepEqual([store.looks, away()], [2, [null, 3000, 0]])
})

test('a single replica looks rarely, since it has all channels', async () => {
  const { clock, store, absences } = await setUp(1)
  clock.advance(30_000)
  await absences.refresh()
  assert.equal(store.looks, 1)
  clock.advance(30_000)
  await absences.refresh()
  assert.equal(store.looks, 2)
})

test('a node with a channel here is here, whatever the store says', async () => {
  const { clock, sessions, absences, away } = await setUp(3)
  openTestSession(sessions, testSocket(), testPrincipal('a'))
  clock.advance(5000)
  await absences.refresh()
  assert.deepEqual(away(), [null, 5000, null])
})

test('a store that could not be read proves no absence: the count starts again', async () => {
  const { clock, store, absences, away } = await setUp(3)
  clock.advance(5000)
  store.broken = true
  await assert.rejects(absences.refresh())
  assert.deepEqual(away(), [null, null, null])
  store.broken = false
  await absences.refresh()
  clock.advance(1000)
  assert.deepEqual(away(), [1000, 1000, null])
})

test('so it does when the replica begins to lead, and not when it ends to', async () => {
  const { clock, absences, away, lead } = await setUp(3)
  clock.advance(2000)
  lead(null)
  assert.deepEqual(away(), [2000, 2000, null])
  lead({ number: 2 })
  await absences.refresh()
  clock.advance(1000)
  assert.deepEqual(away(), [1000, 1000, null])
})
