import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nothingObserved, type Observation } from '#plane/store/contract/store.ts'
import { evidenceOf, instanceOf, reportOf } from '../../../test/fakes/agent-words.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { nodeRow, noonMs, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openLastHolders } from './last-holders.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'

const retired = { slot: slot('a0'), untilMs: noonMs + 1000 }
const node = nodeRow('active', { membership: { kind: 'active', sinceMs: 0, slots: slots({ retired }) } }).value

const setUp = (observed: Partial<Observation> = {}) => {
  const sessions = openSessionRegistry(manualClock(noonMs), oneReplica())
  const holders = openLastHolders({
    store: { observation: async () => ({ ...nothingObserved, ...observed }) },
    holding: { elsewhere: async () => null },
    replicas: oneReplica(),
  })
  const open = (name: string, serial: string): void => {
    const principal = testPrincipal(node.id, {
      proof: { by: 'certificate', issuer: 'ca1', serial, spki: `key-of-${serial}` },
    })
    holders.opened(openTestSession(sessions, testSocket(), principal, evidenceOf(name)), node)
  }
  return { open, isHolder: (name: string, now = node) => holders.isHolder(now, instanceOf(name)) }
}

test('whoever opened the last channel with the current certificate is its holder', async () => {
  const { open, isHolder } = setUp()
  assert.equal(await isHolder('a'), false)
  open('a', 'a1')
  assert.deepEqual([await isHolder('a'), await isHolder('b')], [true, false])
  open('b', 'a1')
  assert.deepEqual([await isHolder('a'), await isHolder('b')], [false, true])
})

test('a channel with a certificate that has been replaced makes nobody the holder', async () => {
  const { open, isHolder } = setUp()
  open('a', 'a1')
  open('copy', 'a0')
  assert.deepEqual([await isHolder('a'), await isHolder('copy')], [true, false])
})

test('whoever had the certificate before is not the holder of one that somebody else has moved on to', async () => {
  const { open, isHolder } = setUp()
  open('a', 'a1')
  const moved = { ...slots(), current: slot('b2'), retired: { slot: slot('a1'), untilMs: noonMs } }
  const now = { ...node, membership: { kind: 'active', sinceMs: 0, slots: moved } } as const
  assert.equal(await isHolder('a', now), false)
})

test('after a restart of the plane the last report says who it was, if it named the current certificate', async () => {
  const certificate = (serial: string) => ({ serial, not_after: '2030-01-02T12:00:00.000Z' })
  const current = setUp({ report: reportOf('a', 1, { certificate: certificate('a1') }) })
  assert.deepEqual([await current.isHolder('a'), await current.isHolder('b')], [true, false])
  const older = setUp({ report: reportOf('a', 1, { certificate: certificate('a0') }) })
  assert.equal(await older.isHolder('a'), false)
})
