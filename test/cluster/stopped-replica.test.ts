// A plane stands still with a node's channel open, and the node is revoked at another. Whatever the node and others sent
// into the buffers of the stopped one meanwhile, it acts on none of it when it goes on; and the receipt says that nothing
// is accepted any more only once that is so.

import assert from 'node:assert/strict'
import * as http from 'node:http'
import * as https from 'node:https'
import { test } from 'node:test'
import { leaseMs, mostBehindMs } from '#plane/store/contract/replicas.ts'
import { evidenceHeader, formatEvidence } from '#wire/core/agent-evidence.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { evidenceOf, reportOf } from '../fakes/agent-words.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { tlsOptions } from '../process/node-call.ts'
import { readReply, type Reply } from '../process/operator-call.ts'
import { newSecret } from '../process/plane-records.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import type { ReplicaDoor } from './enrollment-load.ts'
import { byLeadership, startThreePlanes, untilReady, waitMs, type Tables, type ThreePlanes } from './three-planes.ts'

const long = process.env['MUSTER_LONG'] === '1'
const pastLeaseMs = long ? 60_000 : leaseMs + 2000
/** The lease lasts; what others have committed has not been received for too long. */
const behindMs = (mostBehindMs + leaseMs) / 2
const framesQueued = 20
/** To stop one that is back within its lease. */
const attempts = 5

const three = 'path' in peer('postgres') ? shared<ThreePlanes>((scope) => startThreePlanes(scope)) : null

type Kept = { call(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply>; close(): void }

/** Calls over one connection, which is open before the plane stops and has been used. */
const keptConnection = async (door: ReplicaDoor, as: 'operator' | RawNode): Promise<Kept> => {
  const isOperator = as === 'operator'
  const agent = new (isOperator ? http : https).Agent({ keepAlive: true, maxSockets: 1 })
  const place = isOperator ? { socketPath: door.plane.socket } : tlsOptions(door.target, as.identity())
  const call: Kept['call'] = (method, path, body) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? '' : JSON.stringify(body)
      const headers = {
        ...(isOperator
          ? { authorization: `Bearer ${door.plane.adminKey}` }
          : { [evidenceHeader]: formatEvidence(evidenceOf(as.id())) }),
        ...(text !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      }
      const options = { ...place, agent, method, path, headers }
      const request = isOperator ? http.request(options as http.RequestOptions) : https.request(options)
      request.on('error', reject)
      request.on('response', (response) => void readReply(response).then(resolve, reject))
      request.end(text)
    })
  const first = await (isOperator ? call('GET', '/v1/domain') : call('POST', `/v1/nodes/${as.id()}/confirm`, {}))
  assert.equal(first.status, 200, JSON.stringify(first.body))
  return { call, close: () => agent.destroy() }
}

const connected = async (door: ReplicaDoor, id: string): Promise<{ node: RawNode; channel: RawChannel }> => {
  const node = rawNode(door.target, 'ed25519', evidenceOf(id))
  const enrolled = await node.enrollByToken(await newSecret(door.plane, id))
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  channel.send('report', reportOf(id, 1))
  await channel.frame('reported')
  return { node, channel }
}

/** Each would leave a trace: an observation, a condition and its entry, a revision. */
const sendMore = (channel: RawChannel, id: string, from: number): void => {
  const disk = { name: 'disk_full', since: new Date().toISOString(), reason: 'full', evidence: {} } as const
  for (let number = from; number < from + framesQueued; number++)
    assert.ok(channel.send('report', reportOf(id, number, { conditions: [disk] })))
  channel.send('applied', { config_revision: 99, trust_revision: 99, persisted: false, detail: 'late' })
  channel.send('nonsense', {})
  channel.sendPing('late')
}

const entriesAfterRevocation = async ({ rows }: Tables, id: string): Promise<readonly string[]> => {
  const entries = await rows('SELECT type, operation FROM journal WHERE node = $1 ORDER BY operation', [id])
  const types = entries.map(({ type }) => String(type)).filter((type) => !type.startsWith('receipt.'))
  assert.equal(types.filter((type) => type === 'host.revoked').length, 1)
  return types.slice(types.indexOf('host.revoked') + 1)
}

type Outcome = {
  readonly stoppedAtMs: number
  /** False: its lease was over before it could prolong it, and it came back under a new one. */
  readonly keptLease: boolean
  readonly receipt: ReceiptView
  readonly lastFrames: readonly string[]
  readonly renewal: string
  readonly operator: string
}

const outcomeOf = (reply: Promise<Reply>): Promise<{ status: number; told: string }> =>
  reply.then(
    ({ status, body }) => ({ status, told: `${status} ${body.code ?? ''}` }),
    (error: unknown) => ({ status: 0, told: `no answer: ${(error as NodeJS.ErrnoException).code ?? String(error)}` }),
  )

const runStopped = async (
  { tables }: ThreePlanes,
  { stopped, acting, third }: Record<'stopped' | 'acting' | 'third', ReplicaDoor>,
  id: string,
  stoppedMs: number,
  afterRevocation: () => Promise<unknown> = async () => {},
): Promise<Outcome> => {
  const { node, channel } = await connected(stopped, id)
  const connections = { node: await keptConnection(stopped, node), operator: await keptConnection(stopped, 'operator') }
  const leaseOfStopped = async (): Promise<number | undefined> =>
    (await tables.replicas()).find(({ pid }) => pid === stopped.plane.pid)?.number
  const leaseBefore = await leaseOfStopped()
  stopped.plane.signal('SIGSTOP')
  const [stopMs, stoppedAtMs] = [performance.now(), Date.now()]
  const framesBefore = channel.frames.length
  sendMore(channel, id, 2)
  const renewing = connections.node.call('POST', `/v1/nodes/${id}/renew`, { csr: node.newRenewal().csr })
  const revoked = await acting.plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'stolen' })
  assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  const { id: receiptId, replicas_unconfirmed: unconfirmed, channels_cut: cut, effective_at: effective } = revoked.body
  assert.deepEqual([unconfirmed, cut, effective], [1, 0, null])
  await afterRevocation()
  sendMore(channel, id, 2 + framesQueued)
  const asked = {
    renewal: outcomeOf(renewing),
    operator: outcomeOf(connections.operator.call('POST', '/v1/tokens', { node: `${id}-queued` })),
    // Its handshake is still to come.
    confirmation: outcomeOf(node.confirm()),
  }
  await waitMs(stoppedMs - (performance.now() - stopMs))
  const receiptNow = async (): Promise<ReceiptView> => {
    const { status, body } = await third.plane.api('GET', `/v1/receipts/${receiptId}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const untilEffective = (): Promise<ReceiptView> =>
    eventually('the receipt to be effective', async () => effectiveOnly(await receiptNow()), { withinMs: 10_000 })
  // Under its lease it may still act, so the receipt says nothing yet; without one it never will.
  if (stoppedMs > leaseMs) await untilEffective()
  else {
    const { effective_at: early } = await receiptNow()
    if ((await leaseOfStopped()) === leaseBefore) assert.equal(early, null)
  }
  const pongsBefore = channel.pongsReceived()
  stopped.plane.signal('SIGCONT')

  await eventually(`the channel of ${id} to end`, () => channel.ended(), { withinMs: 5000, everyMs: 5 })
  const [renewal, operator, confirmation] = await Promise.all([asked.renewal, asked.operator, asked.confirmation])
  await untilReady(stopped.plane)
  const receipt = await untilEffective()
  const keptLease = (await leaseOfStopped()) === leaseBefore
  assert.ok([0, 403, 503].includes(renewal.status), `a renewal of a revoked node was answered ${renewal.told}`)
  assert.ok([0, 403, 503].includes(confirmation.status), `a revoked node was answered ${confirmation.told}`)
  assert.deepEqual(
    (await entriesAfterRevocation(tables, id)).filter((type) => type !== 'refused'),
    [],
  )
  const certificates = await tables.rows('SELECT key FROM certificate WHERE node = $1', [id])
  assert.equal(certificates.length, 1, 'none was signed')
  const tokens = await tables.rows('SELECT id FROM token WHERE node = $1', [`${id}-queued`])
  assert.equal(tokens.length, operator.status === 201 ? 1 : 0, 'an operator was told what became of it')
  connections.node.close()
  connections.operator.close()

  const lastFrames = channel.frames.slice(framesBefore)
  if (stoppedMs > leaseMs) {
    // The lease was over: nothing is said but that, and nothing is believed.
    assert.equal(operator.told, '503 REPLICA_BEHIND')
    assert.equal(channel.pongsReceived(), pongsBefore)
  }
  for (const { type } of lastFrames) assert.equal(type, 'closing')
  return {
    stoppedAtMs,
    keptLease,
    receipt,
    lastFrames: lastFrames.map(({ type, body }) => `${type} ${body.code}`),
    renewal: renewal.told,
    operator: operator.told,
  }
}

const effectiveOnly = (receipt: ReceiptView): ReceiptView | null => (receipt.effective_at === null ? null : receipt)

const told = ({ lastFrames, renewal, operator }: Outcome): string =>
  `the channel received ${lastFrames.join(', ') || 'nothing'}; the renewal ${renewal}; the operator ${operator}`

type Seen = { readonly lastSeenMs: number; readonly configRevision: number; readonly report: number }

/** Written down some seconds after it was seen, by whichever plane saw it. */
const observed = async ({ rows }: Tables, id: string): Promise<Seen> => {
  await waitMs(6000)
  const [seen] = await rows('SELECT last_seen_ms, config_revision, report FROM observation WHERE node = $1', [id])
  return {
    lastSeenMs: Number(seen?.['last_seen_ms']),
    configRevision: Number(seen?.['config_revision']),
    report: JSON.parse(String(seen?.['report'])).number,
  }
}

const howOf = ({ replicas }: ReceiptView): readonly string[] => replicas.map(({ how }) => how).toSorted()

test('stopped within its lease, for longer than it may be behind: what was queued waits until it has caught up, and is dropped', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const world = three()
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const { leader, others } = await byLeadership(world)
    // The one that leads: it has sweeps to do, too.
    const doors = { stopped: leader, acting: others[1], third: others[0] }
    const id = `behind-${attempt}`
    const outcome = await runStopped(world, doors, id, behindMs)
    const { configRevision, report } = await observed(world.tables, id)
    assert.deepEqual([configRevision, report], [0, 1])
    t.diagnostic(told(outcome))
    // A machine that is busy enough makes it late for its own lease, and then it is as in the next test.
    if (!outcome.keptLease) continue
    assert.deepEqual(howOf(outcome.receipt), ['acknowledged', 'acknowledged', 'itself'])
    return
  }
  assert.fail('its lease was over each time')
})

test('SIGSTOP past the lease, the node revoked at a plane that is killed, SIGCONT with its frames and calls queued: none is acted on', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const world = three()
  const { leader, others } = await byLeadership(world)
  const [stopped, acting] = others
  const doors = { stopped, acting, third: leader }
  // Between its commit and the proof: the leader collects the rest.
  const outcome = await runStopped(world, doors, 'past-lease', pastLeaseMs, () => acting.plane.kill9())
  const { receipt, stoppedAtMs } = outcome
  assert.deepEqual(howOf(receipt), ['acknowledged', 'lease', 'lease'])
  const effectiveAfterMs = Date.parse(receipt.effective_at ?? '') - stoppedAtMs
  assert.ok(
    effectiveAfterMs > leaseMs - 1500,
    `effective after ${effectiveAfterMs} ms, under the lease of the stopped one`,
  )
  const { lastSeenMs, configRevision, report } = await observed(world.tables, 'past-lease')
  assert.deepEqual([configRevision, report], [0, 1])
  assert.ok(lastSeenMs <= stoppedAtMs, 'nothing was seen of it since')
  t.diagnostic(`${told(outcome)}; effective ${(effectiveAfterMs / 1000).toFixed(1)} s after the stop`)
})
