import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { domainRow, nodeRow, profileRow, vclusterRow } from '../../../test/fakes/sample-rows.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'
import { openUpdates } from './updates.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await turn()
}

/** A store that takes a turn for every read, so that changes can come in between. */
const setUp = () => {
  const clock = manualClock(0)
  const sessions = openSessionRegistry(clock, oneReplica())
  const set = {
    ...{ lifetimeMs: 1000, roots: ['root'], revision: 1, within: new Map<string, string>() },
    issuerRoots: { revision: 0, roots: [] as string[] },
  }
  const gate = { serves: true, opened: Promise.resolve() }
  const state = { reads: 0, mostAtOnce: 0, atOnce: 0 }
  const get = async (kind: string, key: string) => {
    state.reads++
    state.mostAtOnce = Math.max(state.mostAtOnce, ++state.atOnce)
    const profile = profileRow('gpu-cloud').value
    const now = { ...profile, certificate: { ...profile.certificate, lifetimeMs: set.lifetimeMs } }
    await turn()
    state.atOnce--
    if (key === 'broken') throw new Error('cannot be read')
    if (kind === 'node') return nodeRow('active', { id: key, assignment: set.within.get(key) ?? null })
    if (kind === 'vcluster') return vclusterRow(key, { revision: set.revision })
    return kind === 'domain' ? domainRow() : { value: now, version: 1 }
  }
  const core = { store: { get } as unknown as Store, timers: manualTimers(clock), log: silentLog }
  const updates = openUpdates(core, {
    issuer: { roots: () => set.roots, withdrawnIssuers: () => [], issuerRoots: () => set.issuerRoots },
    sessions,
    gate: { serves: () => gate.serves, opened: () => gate.opened },
    urls: () => ({ node: 'https://plane.example', recovery: 'https://plane.example:8442', marked: true }),
  })
  const open = (id: string) => {
    const socket = testSocket()
    const session = openTestSession(sessions, socket, testPrincipal(id))
    const lifetimes = (): number[] =>
      socket.sent.filter(({ type }) => type === 'config').map(({ body }) => body.profile.lifetime_ms)
    const vclusters = (): string[] =>
      socket.sent
        .filter(({ type }) => type === 'config')
        .map(({ body }) => `${body.vcluster}@${body.overlay.vcluster_revision}`)
    return { socket, session, lifetimes, vclusters }
  }
  return { updates, open, set, state, gate }
}

const nothing = { config: 0, trust: 0 }

test('an agent is sent what it lacks, and after a reconnect nothing', async () => {
  const { updates, open } = setUp()
  const first = open('a')
  updates.greeted(first.session, nothing)
  await turns(5)
  assert.deepEqual(
    first.socket.sent.map(({ type }) => type),
    ['trust', 'config'],
  )
  const has = first.session.revisions
  assert.ok(has)
  const second = open('a')
  updates.greeted(second.session, has)
  await turns(5)
  assert.deepEqual(second.socket.sent, [])
})

test('roots of issuers go to agents that have said which they have, once each', async () => {
  const { updates, open, set } = setUp()
  const [older, newer] = [open('a'), open('b')]
  for (const { session } of [older, newer]) updates.greeted(session, nothing)
  updates.hasIssuerRoots(newer.session, 0)
  await turns(5)
  const sent = ({ socket }: typeof older) =>
    socket.sent.filter(({ type }) => type === 'issuer_roots').map(({ body }) => body)
  assert.deepEqual([sent(older), sent(newer)], [[], []], 'the empty set is what agents begin with')
  set.issuerRoots = { revision: 7, roots: ['of corp'] }
  updates.changed()
  await turns(5)
  // One that could not keep it goes on saying the former revision: it is not sent the same again and again.
  updates.hasIssuerRoots(newer.session, 0)
  updates.changed()
  await turns(5)
  assert.deepEqual([sent(older), sent(newer)], [[], [{ revision: 7, roots: ['of corp'] }]])
})

test('a change while one is being sent arrives after it, so that the last sent is what holds', async () => {
  const { updates, open, set } = setUp()
  const { session, lifetimes } = open('a')
  updates.greeted(session, nothing)
  for (const lifetimeMs of [2000, 3000, 4000]) {
    await turn()
    set.lifetimeMs = lifetimeMs
    updates.changed()
  }
  await turns(20)
  assert.equal(lifetimes().at(-1), 4000)
  assert.deepEqual(
    lifetimes(),
    lifetimes().toSorted((a, b) => a - b),
  )
})

test('no agent is sent anything before its hello, or for a change that does not concern it', async () => {
  const { updates, open, state } = setUp()
  const { session, socket } = open('a')
  updates.changed()
  await turns(5)
  assert.deepEqual([socket.sent, state.reads], [[], 0])
  updates.greeted(session, nothing)
  await turns(5)
  const sent = socket.sent.length
  updates.changed()
  await turns(5)
  assert.equal(socket.sent.length, sent)
})

test('a thousand nodes are looked at one at a time, and one that cannot be read stops none', async () => {
  const { updates, open, set, state } = setUp()
  const all = Array.from({ length: 50 }, (_, at) => open(at === 3 ? 'broken' : `n-${at}`))
  for (const { session } of all) updates.greeted(session, nothing)
  await turns(200)
  set.lifetimeMs = 7000
  updates.changed()
  await turns(200)
  assert.equal(all.filter(({ lifetimes }) => lifetimes().at(-1) === 7000).length, 49)
  assert.equal(state.mostAtOnce, 1)
})

test('while the replica is out of touch nothing is sent, also not what was being made ready; then what holds by then', async () => {
  const { updates, open, set, gate } = setUp()
  const [first, second] = [open('a'), open('b')]
  updates.greeted(first.session, nothing)
  updates.greeted(second.session, nothing)
  const { promise, resolve } = Promise.withResolvers<void>()
  Object.assign(gate, { serves: false, opened: promise })
  await turns(20)
  assert.deepEqual([first.socket.sent, second.socket.sent], [[], []])
  set.lifetimeMs = 5000
  Object.assign(gate, { serves: true })
  resolve()
  await turns(20)
  assert.deepEqual([first.lifetimes(), second.lifetimes()], [[5000], [5000]])
})

test('a move concerns its node, a change of a vCluster the nodes that are in it by then', async () => {
  const { updates, open, set, state } = setUp()
  set.within.set('a', 'training')
  const [a, b, c] = [open('a'), open('b'), open('c')]
  for (const { session } of [a, b, c]) updates.greeted(session, nothing)
  await turns(30)
  const reads = state.reads
  set.within.set('b', 'training')
  updates.changedFor('b')
  await turns(10)
  assert.equal(state.reads - reads, 4)
  set.revision = 2
  updates.changedIn('training')
  await turns(20)
  updates.changedIn('inference')
  await turns(10)
  assert.equal(state.reads - reads, 4 + 8)
  set.within.delete('a')
  updates.changedFor('a')
  await turns(10)
  set.revision = 3
  updates.changedIn('training')
  await turns(20)
  assert.deepEqual(
    [a, b, c].map(({ vclusters }) => vclusters()),
    [['training@1', 'training@2', 'null@0'], ['null@0', 'training@1', 'training@2', 'training@3'], ['null@0']],
  )
})

test('a vCluster that changes while one of its nodes is looked at reaches that node too', async () => {
  const { updates, open, set } = setUp()
  set.within.set('a', 'training')
  const { session, vclusters } = open('a')
  updates.greeted(session, nothing)
  for (const revision of [2, 3, 4, 5, 6, 7]) {
    await turn()
    set.revision = revision
    updates.changedIn('training')
  }
  await turns(40)
  assert.equal(vclusters().at(-1), 'training@7')
})
