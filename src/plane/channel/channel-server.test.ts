import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Denial } from '#domain/core/certificate.ts'
import type { Change, RowKind } from '#domain/core/change.ts'
import { silentLog } from '#platform/log.ts'
import { openDenyList } from '#plane/authn/deny-list.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openHoldOff } from '#plane/limits/hold-off.ts'
import { openRetryTimes } from '#plane/limits/retry-times.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { openAgentFigures } from '#plane/node/agent-figures.ts'
import { openReportIntake } from '#plane/node/report-intake.ts'
import { openOutputsIntake } from '#plane/programs/take-outputs-state.ts'
import { openOverlayIntake } from '#plane/fleet/take-overlay-state.ts'
import { openPeersIntake } from '#plane/network/take-peers-applied.ts'
import { nothingObserved, type Store } from '#plane/store/contract/store.ts'
import { formatEvidence } from '#wire/core/agent-evidence.ts'
import { evidenceOf } from '../../../test/fakes/agent-words.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { domainRow, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openChannelServer } from './channel-server.ts'
import { cutDenied } from './cut-sessions.ts'
import { openHolders } from '#plane/identity/holders.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { openGate } from '#plane/cluster/gate.ts'
import { openHolding } from '#plane/sessions/holding.ts'
import { openPresence } from '#plane/liveness/presence.ts'
import { openSilence } from '#plane/liveness/silence.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'
import { systemRandom } from '#platform/random.ts'

const headers = {
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'muster.v1',
}

/** `onRead` runs while the channel is opening: between what its standing was read from and its session. */
const setUp = async (onRead: (row: RowKind) => void = () => {}) => {
  const rows = { node: nodeRow('active'), profile: profileRow('gpu-cloud'), domain: domainRow() }
  const clock = manualClock(noonMs)
  const timers = manualTimers(clock)
  const feed = openFeed()
  const commits: Change[] = []
  const store = {
    get: async (row: keyof typeof rows) => {
      onRead(row)
      return rows[row]
    },
    commit: async (change: Change) => {
      commits.push(change)
      return { kind: 'committed', origin: 'here', writes: change.writes, entries: [] }
    },
    denials: async () => [],
    issuers: async () => [],
    observe: () => {},
    observation: async () => nothingObserved,
  } as unknown as Store
  const replicas = oneReplica()
  const sessions = openSessionRegistry(clock, replicas)
  const denyList = await openDenyList(store, feed)
  feed.subscribe('channels', cutDenied(sessions, openRetryTimes(clock)))
  const holding = openHolding({ clock, log: silentLog }, sessions, replicas)
  const presence = openPresence(clock)
  const silence = openSilence(clock, { sessions, presence, replicas, holding: { holdAgain: () => {} } })
  const holders = openHolders({ store, clock, timers }, { sessions, holding, replicas, silence })
  const core = { store, feed, clock, timers, random: systemRandom, log: silentLog }
  const writeLimit = openWriteLimit(clock, () => 1)
  const channel = {
    ...{ sessions, presence, replicas, holding, holders, writeLimit },
    holdOff: openHoldOff(),
    gate: openGate(replicas),
    updates: {
      greeted: () => {},
      hasIssuerRoots: () => {},
      changed: () => {},
      changedFor: () => {},
      changedIn: () => {},
    },
    overlays: openOverlayIntake(core, writeLimit),
    outputsIntake: openOutputsIntake(core, writeLimit, () => {}),
    sendPeers: { has: () => {}, applied: () => {} },
    peersIntake: openPeersIntake(core, writeLimit),
    reports: openReportIntake(core, { taken: () => {}, recalled: () => {} }),
    agentFigures: openAgentFigures(clock, () => {}),
    secondHolders: openSecondHolders(core, {
      ...holders,
      awaitReturn: async () => 'nothing',
      isConnected: async () => false,
    }),
  }
  const server = openChannelServer(core, {
    channel,
    sightings: { shown: async () => {} },
    tasks: { reported: () => {} },
    denyList,
    urls: () => ({ marked: true }),
  })
  const credential = { by: 'certificate', issuer: 'ca1', serial: 'a1', spki: 'key-of-a1' } as const
  const principal = testPrincipal('gpu-001', { epoch: 4, credential, notAfterMs: noonMs * 2 })
  /** By a process of that name; null: one that does not name itself. */
  const open = (process: string | null = null, head = Buffer.alloc(0)) => {
    const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() })
    // ws asks a socket for these two.
    Object.assign(socket, { setTimeout: () => {}, setNoDelay: () => {} })
    const said = process === null ? {} : { 'muster-evidence': formatEvidence(evidenceOf(process)) }
    const request = { method: 'GET', headers: { ...headers, ...said } } as unknown as Parameters<typeof server.open>[1]
    return server.open(principal, request, socket, head, 'c1')
  }
  /** A channel of another process, which answers when told to. */
  const openOther = (process: string) => {
    const socket = testSocket()
    const session = openTestSession(sessions, socket, principal, evidenceOf(process))
    return { socket, session, answer: () => session.received(clock.monotonicMs()) }
  }
  return { feed, sessions, commits, timers, open, openOther }
}

/** Full and at once, which Node offers under a flag alone. */
const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
}

const turns = async (count = 8): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('a node in good standing gets its channel', async () => {
  const { open, sessions } = await setUp()
  assert.equal(await open(), 'opened')
  assert.equal(sessions.count(), 1)
  sessions.close('DONE', 'the test is over')
})

test('an open channel does not keep what its request was read into', async () => {
  const { open, sessions } = await setUp()
  let head: Buffer<ArrayBuffer> | null = Buffer.alloc(0)
  const kept = new WeakRef(head)
  assert.equal(await open(null, head), 'opened')
  head = null
  // A WeakRef holds its target until the turn in which it was made or read is over.
  await turns()
  collectGarbage()
  assert.equal(kept.deref(), undefined)
  sessions.close('DONE', 'the test is over')
})

test('a denial that is committed while a channel opens does not miss it', async () => {
  const denial: Denial = {
    kind: 'epoch',
    node: 'gpu-001',
    epoch: 4,
    atMs: 1,
    untilMs: noonMs * 2,
    why: 'revoked',
    reason: 'unspecified',
  }
  let revoke = (): void => {}
  const { feed, open, sessions } = await setUp((row) => row === 'domain' && revoke())
  // After the node's row was read: what was read still says that all is well.
  revoke = () =>
    feed.publish({ kind: 'committed', origin: 'here', writes: [{ put: 'denial', value: denial }], entries: [] })
  const outcome = await open()
  assert.equal(outcome !== 'opened' && outcome.code, 'CLIENT_CERT_DENIED')
  assert.equal(sessions.count(), 0)
})

test('a process opens beside its own channel, and beside one that does not name its process', async () => {
  const { open, openOther, sessions, commits } = await setUp()
  const first = openOther('a')
  assert.equal(await open('a'), 'opened')
  assert.deepEqual([first.socket.sent.filter((sent) => sent === 'ping'), commits], [[], []])
  sessions.of('gpu-001').forEach((session) => session.destroy())
  assert.equal(await open(null), 'opened')
  assert.equal(await open(null), 'opened')
  assert.equal(await open('a'), 'opened')
  assert.deepEqual(commits, [])
  sessions.close('DONE', 'the test is over')
})

test('a process without an id is not the one that has an id: it is refused, and ends no channel', async () => {
  const { open, openOther, sessions, commits } = await setUp()
  const live = openOther('a')
  const asked = open(null)
  await turns()
  live.answer()
  const outcome = await asked
  assert.equal(outcome !== 'opened' && outcome.code, 'DUPLICATE_IDENTITY')
  assert.deepEqual(sessions.of('gpu-001'), [live.session])
  assert.equal(commits.flatMap(({ entries }) => entries)[0]?.type, 'node.second_holder')
})

test('another process that answers keeps its channel; the second one is refused, and both are named', async () => {
  const { open, openOther, sessions, commits } = await setUp()
  const live = openOther('a')
  const asked = open('b')
  await turns()
  live.answer()
  const outcome = await asked
  assert.equal(outcome !== 'opened' && outcome.code, 'DUPLICATE_IDENTITY')
  assert.deepEqual(sessions.of('gpu-001'), [live.session])
  const [raised] = commits.flatMap(({ entries }) => entries)
  assert.equal(raised?.type, 'node.second_holder')
  const told = JSON.stringify(raised?.body)
  for (const name of ['instance a0000000', 'instance b0000000', 'BMC-1']) assert.ok(told.includes(name), told)
})

test('another process that is silent makes room: it was killed, and its connection is all that is left of it', async () => {
  const { open, openOther, sessions, timers, commits } = await setUp()
  const gone = openOther('a')
  const asked = open('b')
  for (let round = 0; round < 2; round++) {
    await turns()
    timers.advance(3000)
  }
  assert.equal(await asked, 'opened')
  assert.equal(gone.socket.sent.at(-1).body.code, 'REPLACED')
  assert.deepEqual([sessions.count(), commits], [1, []])
  sessions.close('DONE', 'the test is over')
})

test('of two processes that open at once one is first, and the other is asked about it', async () => {
  const { open, sessions } = await setUp()
  const both = Promise.all([open('a'), open('b')])
  await turns()
  const [first] = sessions.of('gpu-001')
  assert.equal(sessions.count(), 1)
  first?.received(0)
  const codes = (await both).map((outcome) => (outcome === 'opened' ? outcome : outcome.code))
  assert.deepEqual(codes.toSorted(), ['DUPLICATE_IDENTITY', 'opened'])
  sessions.close('DONE', 'the test is over')
})
