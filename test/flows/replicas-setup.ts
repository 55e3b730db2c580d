// The channels of two or three replicas over one real store, in one process: real WebSockets on sockets without a network,
// and clocks that the test moves.

import { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import type { IncomingMessage } from '#platform/tls-server.ts'
import { openDenyList } from '#plane/authn/deny-list.ts'
import { openChannelParts } from '#plane/channel/channel-parts.ts'
import { openAgentFigures } from '#plane/node/agent-figures.ts'
import { openChannelServer } from '#plane/channel/channel-server.ts'
import { sweepSessions } from '#plane/channel/cut-sessions.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { openReceipts } from '#plane/revocation/receipts.ts'
import { leaderStore } from '#plane/cluster/leading.ts'
import { formatEvidence } from '#wire/core/agent-evidence.ts'
import { evidenceOf } from '../fakes/agent-words.ts'
import { joinReplicas, type JoinedReplica } from '../fakes/joined-replicas.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { domainRow, nodeRow, noonMs, profileRow } from '../fakes/sample-rows.ts'
import { testPrincipal } from '../fakes/test-session.ts'
import type { Json } from '../process/operator-call.ts'
import { decodeFrames, encodeFrame, opcodes } from '../process/web-socket-frames.ts'
import { makeSigner, note, openStore, read, workplace } from '../store/harness.ts'

const headers = {
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'muster.v1',
}

/** Lets everything run that waits for nothing but its turn and the disk. */
export const turns = async (count = 60): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

export type TestChannel = {
  /** What the plane said to the upgrade: `opened`, or the code of its refusal. */
  readonly outcome: Promise<string>
  readonly frames: { type: string; body: Json }[]
  ended(): boolean
  send(type: string, body: object): void
  /** From now on it answers no ping. */
  hush(): void
  hangUp(): void
}

export const setUpReplicas = async (t: TestContext, count: number, nodes: readonly string[] = ['gpu-001']) => {
  const { folder, atEnd } = workplace(t)
  const clock = manualClock(noonMs)
  const timers = manualTimers(clock)
  const base = await openStore(folder, makeSigner(), { clock })
  atEnd(() => base.close())
  const active = nodes.map((id) => nodeRow('active', { id, hardware: { macs: [], bmcSerial: null } }).value)
  await base.commit({
    reads: [
      read('domain', 'domain', 0),
      read('profile', 'gpu-cloud', 0),
      ...active.map(({ id }) => read('node', id, 0)),
    ],
    writes: [
      { put: 'domain', value: domainRow().value },
      { put: 'profile', value: profileRow('gpu-cloud').value },
      ...active.map((value) => ({ put: 'node', value }) as const),
    ],
    entries: [note()],
  })
  const join = joinReplicas(base, timers)
  const replicas = await Promise.all(Array.from({ length: count }, () => openReplica(join())))

  async function openReplica(replica: JoinedReplica) {
    const { store } = replica
    const feed = openFeed()
    store.onForeignCommit((committed) => feed.publish(committed))
    const core = { store, feed, clock, random: systemRandom, timers, log: silentLog }
    const denyList = await openDenyList(store, feed)
    const parts = await openChannelParts(core, {
      writeLimit: openWriteLimit(clock, () => 1),
      issuer: { roots: () => ['root'], withdrawnIssuers: () => [], issuerRoots: () => ({ revision: 0, roots: [] }) },
      urls: () => ({ node: 'https://plane.example', recovery: 'https://plane.example:8442', marked: true }),
      agentFigures: openAgentFigures(clock, () => {}),
      onReport: () => {},
    })
    /** Runs before a node is read, once. */
    const held: { beforeRead: (() => Promise<void>) | null } = { beforeRead: null }
    const slowStore: typeof store = {
      ...store,
      async get(row, key) {
        const wait = row === 'node' ? held.beforeRead : null
        held.beforeRead = row === 'node' ? null : held.beforeRead
        await wait?.()
        return store.get(row, key)
      },
    }
    const server = openChannelServer(
      { ...core, store: slowStore },
      {
        ...{ channel: parts, denyList, sightings: { shown: async () => {} }, urls: () => ({ marked: true }) },
        tasks: { reported: () => {} },
      },
    )
    atEnd(() => parts.sessions.close('DONE', 'the test is over'))
    const dial = (node: string, process: string | null): TestChannel =>
      openTestChannel((request, socket) => {
        const credential = { by: 'certificate', issuer: 'ca1', serial: 'a1', spki: 'key-of-a1' } as const
        const principal = testPrincipal(node, { epoch: 4, credential, notAfterMs: noonMs * 2 })
        return server.open(principal, request, socket, Buffer.alloc(0), 'c1')
      }, process)
    const peers = parts.peerProofs
    const receipts = openReceipts(core, { channels: parts.channels, peers })
    let sweeping = false
    return {
      ...{ ...replica, ...parts, feed, clock, held, dial, peers, receipts, random: systemRandom },
      /** What upkeep does every second; what is still under way is not begun again. */
      tick(): void {
        sweepSessions(parts.sessions, clock)
        const fencingToken = store.replicas.leadership()
        if (fencingToken === null || sweeping) return
        sweeping = true
        const over = (): void => void (sweeping = false)
        parts.sweepAbsent(leaderStore(store, fencingToken)).then(over, over)
      },
    }
  }

  /** Time passes for all replicas, second by second, with the upkeep of those that are not `asleep`. */
  const pass = async (ms: number, asleep: readonly object[] = []): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += 1000) {
      timers.advance(Math.min(1000, ms - passedMs))
      await turns(10)
      for (const replica of replicas) if (!asleep.includes(replica)) replica.tick()
    }
    await turns(10)
  }
  /** What comes of it, while time passes. */
  const patiently = async <T>(promise: Promise<T>, mostMs = 30_000): Promise<T> => {
    let over = false
    void promise.finally(() => (over = true)).catch(() => undefined)
    await turns()
    for (let passedMs = 0; passedMs < mostMs && !over; passedMs += 500) {
      timers.advance(500)
      await turns(20)
    }
    return promise
  }
  const membershipOf = async (id: string): Promise<string | null> =>
    (await base.get('node', id))?.value.membership.kind ?? null
  return { base, clock, timers, replicas, pass, patiently, membershipOf }
}

const openTestChannel = (
  upgrade: (request: IncomingMessage, socket: Duplex) => Promise<unknown>,
  process: string | null,
): TestChannel => {
  const frames: TestChannel['frames'] = []
  let answers = true
  let upgraded = false
  let received: Buffer = Buffer.alloc(0)
  let sent = 0
  const socket: Duplex = new Duplex({
    read: () => {},
    write(chunk: Buffer, _encoding, done) {
      done()
      // The first thing written is the answer to the upgrade.
      if (!upgraded) upgraded = true
      else receive(chunk)
    },
  })
  // ws asks a socket for these two.
  Object.assign(socket, { setTimeout: () => {}, setNoDelay: () => {} })
  const receive = (chunk: Buffer): void => {
    const read = decodeFrames(Buffer.concat([received, chunk]))
    received = read.rest
    for (const { opcode, payload } of read.frames) {
      if (opcode === opcodes.text) frames.push(JSON.parse(payload.toString('utf8')))
      if (opcode === opcodes.ping && answers) socket.push(encodeFrame(opcodes.pong, payload))
    }
  }
  const said = process === null ? {} : { 'muster-evidence': formatEvidence(evidenceOf(process)) }
  const request = { method: 'GET', headers: { ...headers, ...said } } as unknown as IncomingMessage
  const outcome = upgrade(request, socket).then((answer) => (isRefusal(answer) ? answer.code : String(answer)))
  return {
    outcome,
    frames,
    ended: () => socket.destroyed,
    send(type, body) {
      const frame = { stream: 0, seq: ++sent, ack: 0, type, body }
      socket.push(encodeFrame(opcodes.text, Buffer.from(JSON.stringify(frame))))
    },
    hush: () => void (answers = false),
    hangUp: () => void socket.destroy(),
  }
}

export const hello = { agent_version: 'test', capabilities: [], config_revision: 0, trust_revision: 0 }

/** What was said before its end. */
export const closingOf = ({ frames }: TestChannel): string | null =>
  frames.find(({ type }) => type === 'closing')?.body.code ?? null
