import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Continuity } from '#domain/continuity/continuity.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Judged } from './judge-sighting.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import type { Committed, JournalHead, Store } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'
import { openSightings } from './sightings.ts'

const turns = async (count = 20): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const setUp = (certainAfterMs = 0, judge?: (statement: string) => Promise<Judged>) => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const feed = openFeed()
  const sessions = openSessionRegistry(clock, oneReplica())
  const now = {
    sequence: 10,
    continuity: { lineage: 0, doubt: null } as Continuity,
    judged: 'fitting' as Judged,
    serves: true,
    forked: false,
  }
  const counted = { signed: 0, journaled: 0, looked: 0 }
  const budget = openCallerBudget(clock, () => ({ perMinute: 9, perMinutePerSource: 9 }))
  const heads = async (): Promise<readonly JournalHead[]> => {
    counted.looked++
    const hash = now.sequence.toString(16).padStart(64, '0')
    return [{ chain: 'c1', sequence: now.sequence, hash, signature: '', keyId: '' }]
  }
  /** Forked: at every place up to its end there is an entry, and none of them is the one that was told. */
  const hashAt = async (_chain: string, sequence: number): Promise<string | null> =>
    sequence > now.sequence ? null : (now.forked ? 'f' : '') + sequence.toString(16).padStart(now.forked ? 63 : 64, '0')
  const commit = async (): Promise<Committed> => {
    counted.journaled++
    return { kind: 'committed', origin: 'here', writes: [], entries: [] }
  }
  const store = { journal: { heads, hashAt }, commit } as unknown as Store
  const core = { store, feed, clock, timers, log: silentLog }
  const sightings = openSightings(core, {
    ...{ sessions, certainAfterMs },
    budgets: { anonymousBudget: budget, authenticatedBudget: budget },
    gate: { serves: () => now.serves },
    recovery: {
      signStatement: () => {
        counted.signed++
        return Buffer.from([counted.signed])
      },
    },
    settings: () => ({ ...defaultDomainSettings('lab.example'), continuity: now.continuity }),
    sightingJudge: { judge: judge ?? (async () => now.judged) },
  })
  const open = (id: string) => {
    const socket = testSocket()
    const session = openTestSession(sessions, socket, testPrincipal(id))
    const told = (): (string | undefined)[] =>
      socket.sent
        .filter(({ type }) => type === 'sighting')
        .map(({ body }) => parseStatement('sighting', body.statement)?.value)
        .map((seen) => `${seen?.lineage}:${seen?.heads[0]?.sequence}`)
    return { session, socket, told }
  }
  /** As long as one round of telling takes. */
  const pass = async (ms = 2_000): Promise<void> => {
    // What ends now first: another wait may follow it.
    timers.advance(0)
    await turns()
    timers.advance(ms)
    await turns()
  }
  const denied = (): void => {
    const value = { kind: 'epoch', node: 'x', epoch: 1, untilMs: 1, reason: 'revoked' } as never
    feed.publish({ kind: 'committed', origin: 'elsewhere', writes: [{ put: 'denial', value }], entries: [] })
  }
  return { sightings, open, pass, denied, now, counted, feed, sessions }
}

test('an agent that has shown its sighting gets new ones, and one that has not gets none', async () => {
  const { sightings, open, pass, counted } = setUp()
  const [first, second, silent] = [open('a'), open('b'), open('c')]
  await sightings.shown(first.session, null)
  await pass()
  await sightings.shown(second.session, 'anything')
  assert.deepEqual([first.told(), second.told(), silent.told()], [['0:10'], ['0:10'], []])
  assert.equal(counted.signed, 1)
})

test('denials that come together are published together, soon, with one signature for all agents', async () => {
  const { sightings, open, pass, denied, now, counted } = setUp()
  const all = Array.from({ length: 500 }, (_, at) => open(`node-${at}`))
  for (const { session } of all) await sightings.shown(session, null)
  await pass()
  for (let at = 0; at < 100; at++) {
    now.sequence++
    denied()
  }
  await pass()
  assert.ok(all.every(({ told }) => told().join() === '0:10,0:110'))
  assert.equal(counted.signed, 2)
  sightings.look()
  await pass()
  assert.equal(counted.signed, 2, 'nothing new, nothing said')
  assert.ok(all.every(({ told }) => told().length === 2))
})

test('what comes while the plane stops is not looked at any more: the store goes right after the channels', async () => {
  const { sightings, open, pass, counted, sessions } = setUp()
  await sightings.shown(open('a').session, null)
  await pass()
  const { looked } = counted
  await pass()
  sightings.look()
  sessions.close('PLANE_STOPPING', 'the plane is restarting')
  await pass()
  assert.equal(counted.looked, looked)
})

test('while the store is in doubt no agent gets a sighting; once it is confirmed all do, also the one that raised the doubt', async () => {
  const { sightings, open, pass, now, feed } = setUp()
  const [first, second] = [open('a'), open('b')]
  await sightings.shown(first.session, null)
  await pass()
  now.judged = 'doubtful'
  const doubt = { why: 'missing', lineage: 0, chain: 'c1', sequence: 90, ours: 10 } as const
  now.continuity = { lineage: 0, doubt: { ...doubt, sinceMs: 0, node: 'b', newestEntryMs: null } }
  await sightings.shown(second.session, 'more than we have')
  now.sequence = 20
  sightings.look()
  await pass()
  assert.deepEqual([first.told(), second.told()], [['0:10'], []])

  now.continuity = { lineage: 1, doubt: null }
  const value = { ...defaultDomainSettings('lab.example'), continuity: now.continuity }
  feed.publish({ kind: 'committed', origin: 'here', writes: [{ put: 'domain', value }], entries: [] })
  await pass()
  assert.deepEqual([first.told(), second.told()], [['0:10', '1:20'], ['1:20']])
})

test('an agent that knows more than the store gets no sighting of its lineage, even where the doubt could not be written', async () => {
  const { sightings, open, pass, now } = setUp()
  const knowing = open('a')
  now.judged = 'doubtful'
  await sightings.shown(knowing.session, 'more than we have')
  await pass()
  assert.deepEqual(knowing.told(), [])
})

test('where a failover may lose the newest entries, a sighting is sent only after this replica has been confirmed since', async () => {
  const { sightings, open, pass, now } = setUp(10_000)
  const one = open('a')
  await sightings.shown(one.session, null)
  await pass()
  now.sequence = 11
  await pass(9_999)
  assert.deepEqual(one.told(), [])
  await pass(1)
  assert.deepEqual(one.told(), ['0:10'])
  sightings.look()
  await pass()
  now.serves = false
  await pass(10_000)
  assert.deepEqual(one.told(), ['0:10'])
})

test('what this plane has not signed is written down once, and the channel goes on; a second sighting ends it', async () => {
  const { sightings, open, pass, now, counted } = setUp()
  const liar = open('a')
  now.judged = 'foreign'
  await sightings.shown(liar.session, 'made up', ['made up before', 'and before that'])
  await pass()
  assert.equal(counted.journaled, 1)
  assert.deepEqual([liar.session.alive, liar.told()], [true, ['0:10']])
  await sightings.shown(liar.session, 'made up')
  assert.deepEqual([liar.session.alive, counted.journaled], [false, 1])
})

test('R1c: a journal that lacks the last published head publishes no new one, though it has grown past that', async () => {
  const { sightings, open, pass, now } = setUp()
  const one = open('a')
  await sightings.shown(one.session, null)
  await pass()
  now.sequence = 30
  now.forked = true
  sightings.look()
  await pass()
  assert.deepEqual(one.told(), ['0:10'])
  now.forked = false
  sightings.look()
  await pass(600_000)
  assert.deepEqual(one.told(), ['0:10', '0:30'])
})

test('R1c: earlier sightings are judged as well as the newest', async () => {
  const judged: string[] = []
  const { sightings, open } = setUp(0, async (statement) => {
    judged.push(statement)
    return statement === 'lost' ? 'doubtful' : 'fitting'
  })
  await sightings.shown(open('a').session, 'newest', ['before', 'lost', 'oldest'])
  assert.deepEqual(judged, ['newest', 'before', 'lost'])
})
