import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import type { Denial } from '#domain/certificate.ts'
import type { RowKind } from '#domain/change.ts'
import { silentLog } from '#platform/log.ts'
import { openDenyList } from '#plane/authn/deny-list.ts'
import { openFeed } from '#plane/feed/feed.ts'
import { openHoldOff } from '#plane/flows/hold-off.ts'
import { openNodePace } from '#plane/flows/node-pace.ts'
import type { Store } from '#plane/store/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { domainRow, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import { testPrincipal } from '../../../test/fakes/test-session.ts'
import { openChannelServer } from './channel-server.ts'
import { cutDenied } from './cut-sessions.ts'
import { openPresence } from './presence.ts'
import { openSessionRegistry } from './session-registry.ts'

const headers = {
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'muster.v1',
}

/** `onRead` runs while the channel is opening: between what its standing was read from and its session. */
const setUp = async (onRead: (row: RowKind) => void) => {
  const rows = { node: nodeRow('active'), profile: profileRow('gpu-cloud'), domain: domainRow() }
  const clock = manualClock(noonMs)
  const feed = openFeed()
  const store = {
    get: async (row: keyof typeof rows) => {
      onRead(row)
      return rows[row]
    },
    denials: async () => [],
    observe: () => {},
  } as unknown as Store
  const sessions = openSessionRegistry(clock)
  const denyList = await openDenyList(store, feed)
  feed.subscribe(cutDenied(sessions))
  const server = openChannelServer({
    ...{ store, feed, clock, sessions, denyList, log: silentLog, timers: manualTimers(clock) },
    ...{ presence: openPresence(clock), holdOff: openHoldOff(), pace: openNodePace(clock) },
    updates: { greeted: () => {}, changed: () => {} },
  })
  const proof = { by: 'certificate', issuer: 'ca1', serial: 'a1' } as const
  const principal = testPrincipal('gpu-001', { epoch: 4, proof, notAfterMs: noonMs * 2 })
  const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() })
  // ws asks a socket for these two.
  Object.assign(socket, { setTimeout: () => {}, setNoDelay: () => {} })
  const request = { method: 'GET', headers } as unknown as Parameters<typeof server.open>[1]
  return { feed, sessions, open: () => server.open(principal, request, socket, Buffer.alloc(0), 'c1') }
}

test('a node in good standing gets its channel', async () => {
  const { open, sessions } = await setUp(() => {})
  assert.equal(await open(), 'opened')
  assert.equal(sessions.count(), 1)
  sessions.close('DONE', 'the test is over')
})

test('a denial that is committed while a channel opens does not miss it', async () => {
  const denial: Denial = { kind: 'epoch', node: 'gpu-001', epoch: 4, untilMs: noonMs * 2, why: 'revoked' }
  let revoke = (): void => {}
  const { feed, open, sessions } = await setUp((row) => row === 'domain' && revoke())
  // After the node's row was read: what was read still says that all is well.
  revoke = () => feed.publish({ kind: 'committed', writes: [{ put: 'denial', value: denial }], entries: [] })
  const outcome = await open()
  assert.equal(outcome !== 'opened' && outcome.code, 'CLIENT_CERT_DENIED')
  assert.equal(sessions.count(), 0)
})
