import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Denial } from '#domain/core/certificate.ts'
import { openRetryTimes } from '#plane/limits/retry-times.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { pingEveryMs, pongWithinMs } from '#wire/channel/channel.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { memberships, nodeRow, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { cutDenied, limitToCertificate, sweepSessions } from './cut-sessions.ts'
import { followCommits } from './follow-commits.ts'
import { openPresence } from '#plane/liveness/presence.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'

const day = 24 * 3_600_000

const setUp = () => {
  const clock = manualClock(0)
  const registry = openSessionRegistry(clock, oneReplica())
  const open = (id: string, epoch: number, serial: string) => {
    const socket = testSocket()
    const credential = { by: 'certificate', issuer: 'ca1', serial, spki: `key-of-${serial}` } as const
    const session = openTestSession(registry, socket, testPrincipal(id, { epoch, credential, notAfterMs: day }))
    return { session, end: (): string | null => socket.sent.at(-1)?.body?.code ?? null, socket }
  }
  const sweep = (): void => sweepSessions(registry, clock)
  return { clock, registry, open, sweep }
}

const denied = (value: Denial): Committed => ({
  kind: 'committed',
  origin: 'here',
  entries: [],
  writes: [{ put: 'denial', value }],
})

const retryTimes = openRetryTimes(manualClock(0))

test('a denied epoch ends its channels and those of the epochs before, and no others', () => {
  const { registry, open } = setUp()
  const [old, current, newer, other] = [open('a', 1, 'a1'), open('a', 2, 'a2'), open('b', 3, 'b1'), open('c', 1, 'c1')]
  const cut = cutDenied(registry, retryTimes)
  cut(denied({ kind: 'epoch', node: 'a', epoch: 2, atMs: 1, untilMs: day, why: 'stolen', reason: 'unspecified' }))
  cut(denied({ kind: 'epoch', node: 'b', epoch: 2, atMs: 1, untilMs: day, why: 'stolen', reason: 'unspecified' }))
  assert.deepEqual(
    [old, current, newer, other].map(({ session }) => session.alive),
    [false, false, true, true],
  )
  assert.equal(current.end(), 'CLIENT_CERT_DENIED')
})

test('a withdrawn authority ends every channel of its certificates, and each agent gets its retry time', () => {
  const { registry, open } = setUp()
  const nodes = ['a', 'b', 'c'].map((node) => open(node, 1, `${node}1`))
  const retryTimes = openRetryTimes(manualClock(0))
  const lasting = { atMs: 1, untilMs: day, why: 'its authority was withdrawn', reason: 'ca-compromise' } as const
  assert.equal(cutDenied(registry, retryTimes)(denied({ kind: 'issuer', issuer: 'ca2', ...lasting })), 0)
  assert.equal(cutDenied(registry, retryTimes)(denied({ kind: 'issuer', issuer: 'ca1', ...lasting })), 3)
  assert.deepEqual(
    nodes.map(({ session, end }) => [session.alive, end()]),
    nodes.map(() => [false, 'ISSUER_WITHDRAWN']),
  )
  assert.equal(retryTimes.nextMs(), 60)
})

test('a denied certificate ends the channel it opened', () => {
  const { registry, open } = setUp()
  const [mine, other] = [open('a', 1, 'a1'), open('a', 1, 'a2')]
  cutDenied(
    registry,
    retryTimes,
  )(
    denied({
      kind: 'certificate',
      issuer: 'ca1',
      serial: 'a1',
      atMs: 1,
      untilMs: day,
      why: 'lost',
      reason: 'unspecified',
    }),
  )
  assert.deepEqual([mine.session.alive, other.session.alive], [false, true])
})

test('A5: a banned key ends the channels of every certificate over it, and no others; a denial gives its own reason', () => {
  const { registry, open } = setUp()
  const [mine, twin, other] = [open('a', 1, 'a1'), open('b', 1, 'a1'), open('c', 1, 'c1')]
  const ban = { put: 'key-ban', value: { spki: 'key-of-a1', why: 'stolen', atMs: 1 } } as const
  const { writes } = denied({
    kind: 'epoch',
    node: 'a',
    epoch: 1,
    atMs: 1,
    untilMs: day,
    why: 'x',
    reason: 'unspecified',
  })
  const commit = { kind: 'committed', origin: 'elsewhere', entries: [], writes: [ban, ...writes] } as const
  assert.equal(cutDenied(registry, retryTimes)(commit), 2)
  assert.deepEqual(
    [mine, twin, other].map(({ session, end }) => [session.alive, end()]),
    [
      [false, 'CLIENT_CERT_DENIED'],
      [false, 'CLIENT_CERT_DENIED'],
      [true, null],
    ],
  )
  assert.equal(mine.socket.sent.at(-1)?.body?.detail, 'x')
})

test('a channel ends at the expiry of its certificate, by the wall clock alone', () => {
  const { clock, open, sweep } = setUp()
  const { session, end } = open('a', 1, 'a1')
  clock.set(day - 1)
  sweep()
  assert.equal(session.alive, true)
  clock.set(day)
  sweep()
  assert.deepEqual([session.alive, end()], [false, 'CLIENT_CERT_EXPIRED'])
})

test('a silent node is pinged once, and cut off without a word when it stays silent', () => {
  const { clock, open, sweep } = setUp()
  const { session, socket } = open('a', 1, 'a1')
  clock.advance(pingEveryMs)
  sweep()
  assert.deepEqual(socket.sent, [])
  for (let i = 0; i < 3; i++) {
    clock.advance(1000)
    sweep()
  }
  assert.deepEqual(socket.sent, ['ping'])
  clock.advance(pongWithinMs - pingEveryMs)
  sweep()
  assert.deepEqual([session.alive, socket.sent], [false, ['ping']])
})

test('a node that answers is asked again after the next silence', () => {
  const { clock, open, sweep } = setUp()
  const { session, socket } = open('a', 1, 'a1')
  for (let round = 0; round < 5; round++) {
    clock.advance(pingEveryMs + 1000)
    sweep()
    session.received(clock.monotonicMs())
  }
  assert.deepEqual([session.alive, socket.sent], [true, Array.from({ length: 5 }, () => 'ping')])
})

test('a certificate that was replaced serves until its connections are drained, and one replaced twice not at all', () => {
  const { clock, open, sweep } = setUp()
  const [older, newer] = [open('a', 4, 'a1'), open('a', 4, 'a2')]
  const promoted = slots({ current: slot('a2'), retired: { slot: slot('a1'), untilMs: 60_000 } })
  const node = nodeRow('active', { membership: { ...memberships.active, slots: promoted } }).value
  for (const { session } of [older, newer]) limitToCertificate(session, node)
  clock.advance(59_000)
  for (const { session } of [older, newer]) session.received(clock.monotonicMs())
  sweep()
  assert.deepEqual([older.session.alive, newer.session.alive], [true, true])
  clock.advance(1_000)
  sweep()
  assert.deepEqual([older.end(), newer.session.alive], ['REPLACED', true])
  limitToCertificate(newer.session, {
    ...node,
    membership: { ...memberships.active, slots: slots({ current: slot('a4') }) },
  })
  assert.equal(newer.end(), 'REPLACED')
})

test('a node that was revoked elsewhere is cut by the denial, also when its row was published with an earlier commit', () => {
  const { clock, registry, open } = setUp()
  const { session, end } = open('a', 1, 'a1')
  const cut: number[] = []
  const follow = followCommits({
    sessions: registry,
    presence: openPresence(clock),
    updates: {
      greeted: () => {},
      hasIssuerRoots: () => {},
      changed: () => {},
      changedFor: () => {},
      changedIn: () => {},
    },
    cuts: { count: (_, channels) => void cut.push(channels) },
    retryTimes,
  })
  const row = { put: 'node', value: { ...nodeRow('revoked').value, id: 'a' } } as const
  const denial = {
    kind: 'epoch',
    node: 'a',
    epoch: 1,
    atMs: 1,
    untilMs: day,
    why: 'stolen',
    reason: 'unspecified',
  } as const
  const elsewhere = { kind: 'committed', origin: 'elsewhere', entries: [] } as const
  follow({ ...elsewhere, writes: [row] })
  follow({ ...elsewhere, writes: [row, { put: 'denial', value: denial }] })
  assert.deepEqual([session.alive, end(), cut], [false, 'CLIENT_CERT_DENIED', [0, 1]])
})
