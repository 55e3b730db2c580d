// Three planes take the same token at once. Whichever call is first, at whichever plane: one key is certified. And three planes
// take the same key at once for several nodes: it is certified for one of them.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, spkiHash, type PrivateKey } from '#pki/keys.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { within } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Reply } from '../process/operator-call.ts'
import { newSecret } from '../process/plane-records.ts'
import { readyCall } from '../process/ready-call.ts'
import { shared } from '../process/shared-plane.ts'
import type { ReplicaDoor } from './enrollment-load.ts'
import { startThreePlanes, waitMs, type Tables, type ThreePlanes } from './three-planes.ts'

const long = process.env['MUSTER_LONG'] === '1'
const rounds = long ? 100 : 5
const callers = long ? 200 : 40

const three = 'path' in peer('postgres') ? shared<ThreePlanes>((scope) => startThreePlanes(scope)) : null

type Asking = { readonly key: PrivateKey; readonly secret: string }
type Attempt = { readonly keyHash: string; readonly reply: Reply; readonly plane: number; readonly repeats: number }

/** All callers are connected, spread over the planes, which are held until all have asked; `first` goes on first. */
const askAllAtOnce = async (
  doors: readonly ReplicaDoor[],
  asking: readonly Asking[],
  first: number,
): Promise<readonly Attempt[]> => {
  const ready = await Promise.all(
    asking.map(async ({ key, secret }, number) => {
      const plane = number % doors.length
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

const certificatesOf = async ({ rows }: Tables, node: string): Promise<readonly CertificateRow[]> =>
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
    const secret = await newSecret(doors[0].plane, node)
    const asking = Array.from({ length: callers }, () => ({ key: generateKey('ed25519'), secret }))
    const attempts = await askAllAtOnce(doors, asking, round % 3)
    const won = attempts.filter(({ reply }) => reply.status === 200)
    assert.equal(won.length, 1, `round ${round}: ${won.length} callers were told that they had won`)
    for (const { reply } of attempts)
      if (reply.status !== 200) assert.deepEqual([reply.status, reply.body.code], [403, 'TOKEN_USED'])
    const [winner] = won as [Attempt]
    wins[winner.plane] = (wins[winner.plane] ?? 0) + 1
    repeats += attempts.reduce((sum, attempt) => sum + attempt.repeats, 0)

    const [certificate, ...others] = await certificatesOf(tables, node)
    assert.deepEqual(others, [], `round ${round}: more than one certificate is in the store`)
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

test(`L3: six nodes with one key at three planes, ${rounds} times: it is certified for one, and the others keep their tokens`, async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const { doors, tables } = three()
  const wins = doors.map(() => 0)
  for (let round = 0; round < rounds; round++) {
    const key = generateKey('ed25519')
    const nodes = Array.from({ length: 6 }, (_, number) => `twin-${round}-${number}`)
    const secrets = await Promise.all(nodes.map((node) => newSecret(doors[0].plane, node)))
    const asking = secrets.map((secret) => ({ key, secret }))
    const attempts = await askAllAtOnce(doors, asking, round % 3)
    const won = nodes.filter((_, at) => attempts[at]?.reply.status === 200)
    assert.equal(won.length, 1, `round ${round}: ${won.join(', ')} have one key`)
    for (const { reply, plane } of attempts) {
      if (reply.status === 200) wins[plane] = (wins[plane] ?? 0) + 1
      else assert.deepEqual([reply.status, reply.body.code], [409, 'KEY_IN_USE'])
    }
    const [claim] = await tables.rows('SELECT doc FROM key_claim WHERE key = $1', [spkiHash(key.spki)])
    const { holders } = JSON.parse(String(claim?.['doc']))
    assert.deepEqual(
      holders.map(({ node }: { node: string }) => node),
      won,
    )
    for (const node of nodes) {
      assert.equal((await certificatesOf(tables, node)).length, won.includes(node) ? 1 : 0, node)
      const tokens = await tables.rows('SELECT doc FROM token WHERE node = $1', [node])
      const states = tokens.map(({ doc }) => JSON.parse(String(doc)).state.kind)
      assert.deepEqual(states, [won.includes(node) ? 'used' : 'unused'], node)
    }
  }
  t.diagnostic(`winners at the planes: ${wins.join(', ')}`)
})

const serialOf = (chainPem: string): string => BigInt(`0x${new X509Certificate(chainPem).serialNumber}`).toString(16)
const spkiOf = (chainPem: string): string =>
  spkiHash(new X509Certificate(chainPem).publicKey.export({ type: 'spki', format: 'der' }))
