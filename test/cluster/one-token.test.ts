// Three planes take the same token at once, and take an identity away while its node asks for more elsewhere. Whoever
// comes first, at whichever plane: one key is certified, and after a revocation nothing of the node works anywhere.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import type { CertificateRecord } from '#domain/certificate.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, spkiHash } from '#pki/keys.ts'
import type { Random } from '#platform/random.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { eventually, within } from '../process/eventually.ts'
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

const long = process.env['MUSTER_LONG'] === '1'
const rounds = long ? 100 : 5
const callers = long ? 200 : 40
const races = long ? 150 : 12

const three = 'path' in peer('postgres') ? shared<ThreePlanes>((scope) => startThreePlanes(scope)) : null

type Attempt = { readonly keyHash: string; readonly reply: Reply; readonly plane: number; readonly repeats: number }

/** Everybody connected, spread over the planes, which are held until all have asked; `first` is the first to go on. */
const askAllAtOnce = async (
  doors: readonly ReplicaDoor[],
  secret: string,
  first: number,
): Promise<readonly Attempt[]> => {
  const ready = await Promise.all(
    Array.from({ length: callers }, async (_, number) => {
      const plane = number % doors.length
      const key = generateKey('ed25519')
      const body = { method: 'token', enrollment_token: secret, csr: makeCsr(key, 'node') }
      const { target } = doors[plane] as ReplicaDoor
      return { plane, keyHash: spkiHash(key.spki), body, target, call: await readyCall(target, null) }
    }),
  )
  for (const { plane } of doors) plane.signal('SIGSTOP')
  const asked = ready.map((caller) => ({ ...caller, ...caller.call.start('POST', '/v1/enroll', caller.body) }))
  await within('everybody to have asked', 30_000, Promise.all(asked.map(({ sent }) => sent)))
  for (const { plane } of [...doors.slice(first), ...doors.slice(0, first)]) plane.signal('SIGCONT')
  return Promise.all(
    asked.map(async ({ keyHash, plane, body, target, reply }) => {
      let answered = await reply
      let repeats = 0
      // Told to come back: the same request, which is safe to repeat whatever became of the first.
      for (; answered.status === 503 && repeats < 20; repeats++) {
        await waitMs(100)
        answered = await nodeCall(target, null, 'POST', '/v1/enroll', body)
      }
      return { keyHash, plane, reply: answered, repeats }
    }),
  )
}

const certificatesOf = async ({ rows }: Tables, node: string): Promise<readonly CertificateRecord[]> =>
  (await rows('SELECT doc FROM certificate WHERE node = $1', [node])).map(({ doc }) => JSON.parse(String(doc)))

const entriesOf = async ({ rows }: Tables, node: string, type: string) =>
  (await rows('SELECT bytes FROM journal WHERE node = $1 AND type = $2', [node, type])).map(({ bytes }) =>
    JSON.parse(String(bytes)),
  )

test(`${callers} callers at three planes with one token, each with its own key, ${rounds} times: one wins`, async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const { doors, tables } = three()
  const wins = doors.map(() => 0)
  let repeats = 0
  for (let round = 0; round < rounds; round++) {
    const node = `prize-${round}`
    const attempts = await askAllAtOnce(doors, await newSecret(doors[0].plane, node), round % 3)
    const won = attempts.filter(({ reply }) => reply.status === 200)
    assert.equal(won.length, 1, `round ${round}: ${won.length} callers were told that they had won`)
    for (const { reply } of attempts)
      if (reply.status !== 200) assert.deepEqual([reply.status, reply.body.code], [403, 'TOKEN_USED'])
    const [winner] = won as [Attempt]
    wins[winner.plane] = (wins[winner.plane] ?? 0) + 1
    repeats += attempts.reduce((sum, attempt) => sum + attempt.repeats, 0)

    const [certificate, ...others] = await certificatesOf(tables, node)
    assert.deepEqual(others, [], `round ${round}: more than one certificate is on record`)
    assert.equal(certificate?.serial, serialOf(winner.reply.body.certificate_chain))
    assert.equal(spkiOf(winner.reply.body.certificate_chain), winner.keyHash)
    const [entry, ...more] = await entriesOf(tables, node, 'host.enrolled')
    assert.deepEqual(more, [], `round ${round}: more than one enrollment was journaled`)
    assert.equal(entry.body.key, `SHA256:${winner.keyHash}`)
    const tokens = await tables.rows('SELECT doc FROM token WHERE node = $1', [node])
    assert.deepEqual(
      tokens.map(({ doc }) => JSON.parse(String(doc)).state.kind),
      ['used'],
    )
  }
  const enrolled = await tables.rows("SELECT bytes FROM journal WHERE type = 'host.enrolled' AND node LIKE 'prize-%'")
  assert.equal(new Set(enrolled.map(({ bytes }) => JSON.parse(String(bytes)).token)).size, rounds)
  for (const { plane } of doors) {
    const { body } = await plane.api('POST', '/v1/journal/verify', {})
    assert.equal(body.intact, true, JSON.stringify(body))
  }
  t.diagnostic(`winners at the planes: ${wins.join(', ')}; ${repeats} calls had to be repeated`)
})

const serialOf = (chainPem: string): string => BigInt(`0x${new X509Certificate(chainPem).serialNumber}`).toString(16)
const spkiOf = (chainPem: string): string =>
  spkiHash(new X509Certificate(chainPem).publicKey.export({ type: 'spki', format: 'der' }))

/** A node that asks for more at two planes, while the third takes away what it has. */
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
  const [revoked, renewed, recovered] = await Promise.all([
    later().then(() => revoking.plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'race' })),
    later()
      .then(() => calls.renew.send('POST', `/v1/nodes/${id}/renew`, { csr: renewal.csr }))
      .then((reply) => keep(reply, renewal.key.pkcs8Pem())),
    later()
      .then(() => calls.recover.send('POST', '/v1/recover', recoverRequest))
      .then((reply) => keep(reply, recovery.key.pkcs8Pem())),
  ])
  assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  for (const door of doors) for (const identity of held) await nothingWorks(door, id, identity)
  await eventually(`the channel of ${id} to be closed`, () => channel.ended(), { withinMs: 5000 })
  const again = await nodeCall(recoveryTarget, null, 'POST', '/v1/recover', recoverRequest)
  assert.ok(again.status === 403, `${id} recovered after all: ${again.status}`)
  const certificates = await certificatesOf(tables, id)
  assert.equal(certificates.length, held.length, 'what is on record is what was handed out')
  const [, ...last] = await entriesOf(tables, id, 'host.revoked')
  assert.deepEqual(last, [])
  return { renewed, recovered, unconfirmed: Number(revoked.body.replicas_unconfirmed) }
}

/** About as long as a request takes. */
const spreadMs = 12

const nothingWorks = async ({ target }: ReplicaDoor, id: string, identity: Identity): Promise<void> => {
  const confirmed = await nodeCall(target, identity, 'POST', `/v1/nodes/${id}/confirm`, {})
  assert.deepEqual([confirmed.status, confirmed.body.code], [403, 'NODE_REVOKED'], `${id} confirms`)
  const channel = await openRawChannel(target, identity, id)
  assert.ok('status' in channel, `${id} opens a channel`)
  assert.deepEqual([channel.status, channel.body.code], [403, 'NODE_REVOKED'], `${id} opens a channel`)
}

test(`revoked at one plane while it renews at another and recovers at the third, ${races} times: nothing works anywhere`, async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const world = three()
  await withSeed(async (random) => {
    let [renewals, recoveries, unconfirmed] = [0, 0, 0]
    for (let round = 0; round < races; round++) {
      const outcome = await raceOnce(world, round, random)
      renewals += Number(outcome.renewed)
      recoveries += Number(outcome.recovered)
      unconfirmed += outcome.unconfirmed
    }
    t.diagnostic(
      `${renewals} renewals and ${recoveries} recoveries came before the revocation; in ${unconfirmed} receipts a plane was missing`,
    )
  })
})
