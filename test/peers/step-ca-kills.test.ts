// A plane that is killed again and again while a real step-ca signs for it, at every point between the intent and the reply: each node has one
// certificate, and whatever else was signed is listed and revoked at the step-ca.

import assert from 'node:assert/strict'
import * as https from 'node:https'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { spkiHash } from '#pki/keys.ts'
import type { OrphanView } from '#wire/issuers/issuer-api.ts'
import { makeToken, succeeded } from '../compliance/ask-plane.ts'
import { type Asked, says, startLyingIssuer } from '../fakes/lying-issuer.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import type { Identity } from '../process/node-call.ts'
import type { Json } from '../process/operator-call.ts'
import { storedCertificates } from '../process/plane-records.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { onPostgres } from '../process/store-under-test.ts'
import { addStepCa, signProfile } from './added-issuers.ts'
import { withPeer } from './peer.ts'
import { isPeersRun } from './run-of-peers.ts'
import { startStepCa, type StepCaServer } from './step-ca.ts'

/** On PostgreSQL each of them waits for the lease of the dead plane. */
const rounds = onPostgres() ? (isPeersRun ? 50 : 5) : isPeersRun ? 200 : 20

/** `early`: a moment after the node has asked. `asked`: before the step-ca has the order. `signed`: before the plane has the answer.
 * `answered`: a moment after that. `committed`: when the certificate has its row. */
const points = ['early', 'asked', 'signed', 'answered', 'committed'] as const
type Point = (typeof points)[number]

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

type Signed = { readonly serial: string; readonly spki: string }

/** Between the plane and the step-ca, so that the moment is known at which either has heard the other. */
const startBetween = async (t: Scope, server: StepCaServer) => {
  const outer = await startLyingIssuer(t)
  const signed: Signed[] = []
  const underWay = new Set<Promise<unknown>>()
  const between = {
    ...{ address: outer.address, serverRoot: outer.roots.join(''), signed },
    onAsked: (): Promise<void> | null => null,
    onSigned: (): Promise<void> | null => null,
    onAnswered: (): void => {},
    settled: () => Promise.all(underWay),
  }
  const pass = async (response: ServerResponse, asked: Asked): Promise<void> => {
    const isOrder = asked.path === '/1.0/sign'
    if (isOrder && between.onAsked() !== null) return
    const { status, text } = await forward(server, asked)
    if (isOrder && status === 201) signed.push(signedIn(text))
    if (isOrder && between.onSigned() !== null) return
    says(status, text)(response, asked)
    if (isOrder) between.onAnswered()
  }
  outer.answer((response, asked) => {
    const passing = pass(response, asked).catch(() => void response.destroy())
    underWay.add(passing)
    void passing.finally(() => underWay.delete(passing))
  })
  return between
}

const signedIn = (text: string): Signed => {
  const { certChain } = JSON.parse(text) as { readonly certChain: readonly string[] }
  const leaf = parseCertificate(fromPem('CERTIFICATE', certChain[0] ?? '') ?? assert.fail(text))
  assert.ok(leaf.kind === 'certificate')
  return { serial: leaf.serial, spki: spkiHash(leaf.spki) }
}

const forward = (
  { address, files }: StepCaServer,
  { method, path, body }: Asked,
): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const options = { method, ca: files.root, agent: false as const, timeout: 30_000, headers }
    const request = https.request(`${address}${path}`, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    request.on('timeout', () => request.destroy(new Error('the step-ca does not answer')))
    request.on('error', reject)
    request.end(body === null ? undefined : JSON.stringify(body))
  })

type Between = Awaited<ReturnType<typeof startBetween>>

/** Resolves when the plane is dead. */
const killAt = async (point: Point, plane: Plane, between: Between, node: string, momentMs: number): Promise<void> => {
  const reached = Promise.withResolvers<void>()
  const reach = (): Promise<void> => {
    reached.resolve()
    return reached.promise
  }
  between.onAsked = () => (point === 'asked' ? reach() : null)
  between.onSigned = () => (point === 'signed' ? reach() : null)
  between.onAnswered = () => void (point === 'answered' && reach())
  if (point === 'early') reached.resolve()
  if (point === 'committed') {
    const before = (await storedCertificates(plane, node)).length
    const isThere = async () => (await storedCertificates(plane, node)).length > before
    void eventually('the row', isThere, { withinMs: 30_000, everyMs: 2 }).then(() => reached.resolve(), reached.reject)
  }
  await within(`the plane to come to '${point}'`, 30_000, reached.promise)
  if (point === 'early' || point === 'answered') await later(momentMs)
  await plane.kill9()
  Object.assign(between, { onAsked: () => null, onSigned: () => null, onAnswered: () => {} })
}

type Life = {
  readonly id: string
  readonly node: RawNode
  readonly spki: string
  ask(): Promise<Json>
  /** From now on the node presents what it got. */
  use(): void
}

const spkiOf = ({ key }: { readonly key: { readonly spki: Uint8Array } }): string => spkiHash(key.spki)

const enrolling = async (plane: Plane, id: string): Promise<Life> => {
  const { secret } = await makeToken(plane, { node: id, profile: 'outside' })
  const node = rawNode(await plane.target(), 'p256')
  return { id, node, spki: spkiOf(node), ask: async () => (await node.enrollByToken(secret)).body, use() {} }
}

const renewing = ({ id, node }: Life): Life => {
  const request = node.newRenewal()
  let got: Identity | null = null
  const ask = async (): Promise<Json> => {
    const { reply, identity } = await node.renew(request)
    got = identity ?? got
    return reply.body
  }
  return { id, node, spki: spkiOf(request), ask, use: () => node.use(got ?? assert.fail('no certificate')) }
}

test(`a plane that is killed ${rounds} times while a step-ca signs: one certificate a node, and the rest is revoked there`, async (t) => {
  const binary = withPeer(t, 'step-ca')
  if (binary === null || withPeer(t, 'openssl') === null) return
  const server = await startStepCa(t, binary)
  const between = await startBetween(t, server)
  let plane = await startPlane(t)
  const at = { at: between.address, serverRoot: between.serverRoot }
  const issuer = await addStepCa(plane, server, 'corp', at)
  await signProfile(plane, issuer, 'outside')
  await between.settled()
  // Those of the test of the issuer.
  between.signed.length = 0

  // On PostgreSQL the lease of the dead plane has to end first: before a node is answered, and before there is a leader that revokes.
  const patience = { withinMs: 60_000, ...(onPostgres() ? { everyMs: 1000 } : {}) }
  const kept = new Set<string>()
  let last: Life | null = null
  for (let round = 0; round < rounds; round++) {
    const point = points[round % points.length] ?? 'early'
    const life: Life = last !== null && round % 4 === 3 ? renewing(last) : await enrolling(plane, `node-${round}`)
    const turn = Math.floor(round / points.length)
    const momentMs = point === 'early' ? (turn * 5) % 30 : turn % 8
    const killed = killAt(point, plane, between, life.id, momentMs)
    // It may have had its answer before the plane died, or lose its connection.
    await Promise.all([killed, life.ask().catch(() => null)])
    await between.settled()
    plane = await plane.restart()
    const ofKey = async () => (await storedCertificates(plane, life.id)).filter(({ spki }) => spki === life.spki)
    const before = await ofKey()
    const isAnswered = async (): Promise<boolean> => (await life.ask()).certificate_chain !== undefined
    await eventually(`${life.id} to be answered after a death at '${point}'`, isAnswered, patience)
    const [certificate, ...more] = await ofKey()
    assert.deepEqual(more, [], 'one certificate')
    assert.ok(
      certificate !== undefined && (before.length === 0 || before[0]?.serial === certificate.serial),
      'the same',
    )
    assert.ok(between.signed.filter(({ spki }) => spki === life.spki).length <= 2, 'exactly one new one')
    life.use()
    succeeded(await life.node.confirm())
    kept.add(certificate.serial)
    last = life
  }

  const isOutboxEmpty = async (): Promise<boolean> =>
    succeeded(await plane.api('GET', '/v1/issuers/corp')).revocations_waiting === 0
  await eventually('the outbox to be empty', isOutboxEmpty, patience)
  const { orphans } = succeeded(await plane.api('GET', '/v1/issuer-orphans?limit=1000')) as { orphans: OrphanView[] }
  assert.ok(orphans.every(({ revocation }) => revocation === 'done'))
  const serials = orphans.map(({ serial }) => serial)
  const undelivered = between.signed.filter(({ serial }) => !kept.has(serial))
  t.diagnostic(`${rounds} deaths, ${between.signed.length} signed, ${undelivered.length} of them not delivered`)
  // At each fifth death, the step-ca has signed and the plane has not heard of it.
  assert.ok(undelivered.length >= rounds / points.length)
  for (const { serial } of undelivered) {
    assert.ok(serials.includes(serial), `${serial} was signed, is nobody's, and is not listed`)
    assert.ok(await issuer.isRevoked(serial), `${serial} is not revoked at the step-ca`)
  }
  for (const serial of kept) assert.ok(!serials.includes(serial), 'a certificate of a node is listed')
})
