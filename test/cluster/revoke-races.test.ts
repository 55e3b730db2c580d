// A node asks for more at two planes, while the third takes away what it has. From the moment the receipt says that the
// revocation is in effect nothing of the node works anywhere, also nothing that was on its way to it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CertificateRow } from '#domain/core/certificate.ts'
import type { Random } from '#platform/random.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall, type Identity } from '../process/node-call.ts'
import type { Reply } from '../process/operator-call.ts'
import { newSecret } from '../process/plane-records.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { rawNode } from '../process/raw-node.ts'
import { rawEvidence } from '../process/raw-recovery.ts'
import { readyCall } from '../process/ready-call.ts'
import { shared } from '../process/shared-plane.ts'
import { withSeed } from '../process/with-seed.ts'
import type { ReplicaDoor } from './enrollment-load.ts'
import { startThreePlanes, waitMs, type Tables, type ThreePlanes } from './three-planes.ts'

const rounds = process.env['MUSTER_LONG'] === '1' ? 500 : 20
/** About as long as a request takes. */
const spreadMs = 12

const three = 'path' in peer('postgres') ? shared<ThreePlanes>((scope) => startThreePlanes(scope)) : null

const certificatesOf = async ({ rows }: Tables, node: string): Promise<readonly CertificateRow[]> =>
  (await rows('SELECT doc FROM certificate WHERE node = $1', [node])).map(({ doc }) => JSON.parse(String(doc)))

const raceOnce = async ({ doors, tables }: ThreePlanes, round: number, random: Random) => {
  const [revoking, renewing, recovering] = [0, 1, 2].map((step) => doors[(round + step) % 3]) as [
    ReplicaDoor,
    ReplicaDoor,
    ReplicaDoor,
  ]
  const id = `torn-${round}`
  const node = rawNode(renewing.target)
  const enrolled = await node.enrollByToken(await newSecret(revoking.plane, id), { recovery: { kind: 'bearer' } })
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  const channel = await openRawChannel(recovering.target, node.identity(), id)
  assert.ok('frames' in channel, JSON.stringify(channel))
  const recoveryTarget = {
    url: `https://127.0.0.1:${new URL(recovering.plane.recoveryUrl).port}`,
    roots: enrolled.body.recovery_trust.roots,
  }
  const held: Identity[] = [node.identity()]
  const [renewal, recovery] = [node.newRenewal(), node.newRenewal()]
  const calls = {
    renew: await readyCall(renewing.target, node.identity()),
    recover: await readyCall(recoveryTarget, null),
  }
  const recoverRequest = {
    node_id: id,
    credential: { kind: 'bearer', token: enrolled.body.recovery_token },
    counter: enrolled.body.counter,
    csr: recovery.csr,
    failure: { class: 'cert_expired', code: 'RACE', since: new Date().toISOString(), cert_not_after: null },
    evidence: rawEvidence('racer'),
    correlation: `race-${id}`,
  }
  const keep = ({ status, body }: Reply, key: string): boolean => {
    if (status === 200) held.push({ keyPem: key, chainPem: body.certificate_chain })
    return status === 200
  }
  const later = () => waitMs(random.unit() * spreadMs)
  const onTheirWay = Promise.all([
    later()
      .then(() => calls.renew.send('POST', `/v1/nodes/${id}/renew`, { csr: renewal.csr }))
      .then((reply) => keep(reply, renewal.key.pkcs8Pem())),
    later()
      .then(() => calls.recover.send('POST', '/v1/recover', recoverRequest))
      .then((reply) => keep(reply, recovery.key.pkcs8Pem())),
  ])
  await later()
  const receipt = await untilEffective(revoking, id)
  // Whatever has arrived by now, before anything else does.
  await Promise.all(doors.flatMap((door) => held.map((identity) => nothingWorks(door, id, identity))))
  const [renewed, recovered] = await onTheirWay
  await Promise.all(doors.flatMap((door) => held.map((identity) => nothingWorks(door, id, identity))))
  await eventually(`the channel of ${id} to be closed`, () => channel.ended(), { withinMs: 5000 })
  for (const { target } of [renewing, recovering]) {
    const again = await nodeCall(target, node.identity(), 'POST', `/v1/nodes/${id}/renew`, { csr: renewal.csr })
    assert.equal(again.status, 403, `${id} renewed after all`)
  }
  const again = await nodeCall(recoveryTarget, null, 'POST', '/v1/recover', recoverRequest)
  assert.equal(again.status, 403, `${id} recovered after all`)

  const certificates = await certificatesOf(tables, id)
  assert.equal(certificates.length, held.length, 'what is in the store is what was handed out')
  for (const { subject } of certificates) assert.ok(subject.kind === 'node' && subject.epoch <= receipt.epoch)
  const entries = await tables.rows('SELECT type FROM journal WHERE node = $1 ORDER BY operation', [id])
  const after = entries.map(({ type }) => String(type)).filter((type) => type !== 'refused')
  assert.deepEqual(after.slice(after.indexOf('host.revoked')), ['host.revoked', 'receipt.effective', 'receipt.settled'])
  return { renewed, recovered, ...receipt }
}

const untilEffective = async ({ plane }: ReplicaDoor, id: string) => {
  const { status, body } = await plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'race' })
  assert.equal(status, 200, JSON.stringify(body))
  let receipt = body as ReceiptView
  const late = receipt.effective_at === null
  while (receipt.effective_at === null) {
    const asked = await plane.api('GET', `/v1/receipts/${receipt.id}?wait_ms=20000`)
    assert.equal(asked.status, 200, JSON.stringify(asked.body))
    receipt = asked.body as ReceiptView
  }
  const { effective_ms: effectiveMs, last_channel_cut_ms: lastCutMs } = receipt.latency
  assert.equal(receipt.replicas.length, 3)
  return { epoch: receipt.epoch, late, effectiveMs: effectiveMs ?? NaN, lastCutMs }
}

const nothingWorks = async ({ target }: ReplicaDoor, id: string, identity: Identity): Promise<void> => {
  const confirmed = await nodeCall(target, identity, 'POST', `/v1/nodes/${id}/confirm`, {})
  assert.deepEqual([confirmed.status, confirmed.body.code], [403, 'NODE_REVOKED'], `${id} confirms`)
  const channel = await openRawChannel(target, identity, id)
  assert.ok('status' in channel, `${id} opens a channel`)
  assert.deepEqual([channel.status, channel.body.code], [403, 'NODE_REVOKED'], `${id} opens a channel`)
}

/** Rows compared with the journal at each plane in turn, until the end: a commit under way is no difference. */
const verifyMeanwhile = ({ doors }: ThreePlanes) => {
  let ended = false
  const run = async (): Promise<readonly unknown[]> => {
    const found: unknown[] = []
    for (let at = 0; !ended; at++) {
      const { plane } = doors[at % doors.length] as ReplicaDoor
      const { body } = await plane.api('POST', '/v1/journal/verify', {})
      if (body.broken !== null) found.push(body.broken)
      found.push(...body.rows.differences)
      await waitMs(100)
    }
    return found
  }
  const running = run()
  return {
    end() {
      ended = true
      return running
    },
  }
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN

test(`revoked at one plane while it renews at another and recovers at the third, ${rounds} times: after the receipt no certificate works`, async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const world = three()
  await withSeed(async (random) => {
    const outcomes: Awaited<ReturnType<typeof raceOnce>>[] = []
    const verifying = verifyMeanwhile(world)
    for (let round = 0; round < rounds; round++) outcomes.push(await raceOnce(world, round, random))
    assert.deepEqual(await verifying.end(), [], 'rows and journal agree all the while, at every plane')
    const count = (is: (outcome: (typeof outcomes)[number]) => boolean): number => outcomes.filter(is).length
    const effective = outcomes.map(({ effectiveMs }) => effectiveMs)
    const cuts = outcomes.flatMap(({ lastCutMs }) => (lastCutMs === null ? [] : [lastCutMs]))
    t.diagnostic(
      `${count((one) => one.renewed)} renewals and ${count((one) => one.recovered)} recoveries came before the revocation; ` +
        `effective after ${percentile(effective, 0.5)} ms (median), ${percentile(effective, 0.99)} ms (p99), ` +
        `${Math.max(...effective)} ms (most); ${cuts.length} channels cut, the last after ${Math.max(...cuts)} ms; ` +
        `${count((one) => one.late)} were not effective yet when the call was answered`,
    )
  })
})
