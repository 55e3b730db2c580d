// Recovery over real TLS, on a real plane: who is let in, what the door shows, and what is remembered of it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { Core } from '#plane/core/core.ts'
import { recoveryRoutes, type RecoveryRouteParts } from '#plane/recovery/recovery-routes.ts'
import { RecoverResponse } from '#wire/recovery/recovery-api.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import { presentedChain } from '../process/presented-chain.ts'
import { askChallenge, rawEvidence, recoverableNode } from '../process/raw-recovery.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane } from '../process/start-plane.ts'
import { openTlsConnection } from '../process/tls-connection.ts'
import { withPeer } from '../peers/peer.ts'

// Refusals of this file must not use up what strangers may.
const shared = sharedPlane()
const withRoom = async (): Promise<void> => {
  const set = { strangersPerMinute: 10_000, strangersPerMinutePerSource: 10_000 }
  assert.equal((await shared().api('PATCH', '/v1/domain', { set })).status, 200)
}

test('the door of recovery has three calls, each open to anyone, and nothing of the node listener', async (t) => {
  const routes = recoveryRoutes({} as Core, {} as RecoveryRouteParts)
  assert.deepEqual(
    routes.map(({ method, path, access }) => `${method} ${path} ${access}`),
    ['POST /v1/challenge anyone', 'POST /v1/recover anyone', 'POST /v1/rehearse anyone'],
  )
  const { target, node } = await recoverableNode(shared(), 'door-1')
  const connection = await openTlsConnection(t, target, null)
  for (const { method, path } of routes) {
    const { status, body } = await connection.call(method as 'POST', path, { garbage: 1 })
    assert.deepEqual([status, body.code], [400, 'REQUEST_INVALID'], path)
    assert.equal((await connection.call('GET', path)).body.code, 'METHOD_NOT_ALLOWED')
  }
  for (const path of ['/v1/bundle', '/v1/nodes/door-1/confirm', '/v1/enroll', '/v1/nodes']) {
    assert.equal((await connection.call('POST', path, {})).body.code, 'NOT_FOUND', path)
  }
  assert.equal((await connection.upgrade(`/v1/nodes/${node.id()}/channel`)).body.code, 'NOT_FOUND')
})

test('it speaks TLS 1.3 only, takes up no session again, and shows a chain that the roots of the runtime do not know', async (t) => {
  const { target } = await recoverableNode(shared(), 'door-2')
  const first = await openTlsConnection(t, target, null)
  assert.equal(first.protocol, 'TLSv1.3')
  await first.call('POST', '/v1/challenge', {})
  for (const session of first.sessions()) {
    assert.equal((await openTlsConnection(t, target, null, { session })).reused, false)
  }
  await assert.rejects(openTlsConnection(t, target, null, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }))
  const runtime = await shared().target()
  await assert.rejects(openTlsConnection(t, { ...runtime, url: target.url }, null), /self-signed|unable to/)
  await assert.rejects(openTlsConnection(t, { ...target, url: runtime.url }, null), /unable to|self-signed/)
})

test('OpenSSL sees a chain of two, the leaf and a recovery root that is no root of the runtime', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { target } = await recoverableNode(shared(), 'door-3')
  const chain = await presentedChain(openssl, target)
  assert.equal(chain.length, 2)
  assert.deepEqual(chain.slice(1), target.roots)
  assert.ok(!(await shared().target()).roots.includes(chain[1] ?? ''))
})

test('a certificate of the runtime is nothing there: neither asked for nor worth anything', async (t) => {
  await withRoom()
  const holder = await activeNode(shared(), 'door-4')
  const { target } = await recoverableNode(shared(), 'door-5')
  const connection = await openTlsConnection(t, target, holder.identity())
  assert.equal((await connection.call('POST', '/v1/nodes/door-4/confirm', {})).body.code, 'NOT_FOUND')
  const other = await recoverableNode(shared(), 'door-6')
  const body = { ...(await other.body()), node_id: 'door-4' }
  const reply = await connection.call('POST', '/v1/recover', body)
  assert.equal(reply.body.code, 'CHALLENGE_INVALID')
  const bearer = { ...body, credential: { kind: 'bearer', token: `recover_${'a'.repeat(43)}` } }
  assert.equal((await connection.call('POST', '/v1/recover', bearer)).body.code, 'RECOVERY_UNKNOWN')
})

for (const by of ['key', 'bearer'] as const) {
  test(`a node recovers by its ${by} and goes on; what it had before is worth nothing`, async () => {
    await withRoom()
    const machine = await recoverableNode(shared(), `by-${by}`, by)
    const before = machine.node.identity()
    const reply = await machine.comeBack()
    assert.ok(Check(RecoverResponse, reply.body))
    assert.equal(reply.body.epoch, 2)
    assert.deepEqual(reply.body.endpoints.recovery, [shared().recoveryUrl])
    assert.deepEqual(reply.body.profile.recovery, { mode: 'auto', rehearse_every_ms: 86_400_000 })
    assert.equal(typeof reply.body.recovery_token, by === 'bearer' ? 'string' : 'undefined')
    assert.equal((await machine.node.confirm()).status, 200)
    const path = `/v1/nodes/${machine.id}/confirm`
    assert.equal((await nodeCall(machine.node.target, before, 'POST', path, {})).body.code, 'CLIENT_CERT_DENIED')
    const story = await journalEntries(shared(), { node: machine.id })
    assert.deepEqual(
      story.filter(({ correlation }) => correlation === `story-${machine.id}`).map(({ type }) => type),
      ['node.recovery_requested', 'node.superseded', 'node.recovered', 'node.confirmed'],
    )
  })
}

test('a bearer token that a recovery has rotated away dies with the first use of what replaced it', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'rotated', 'bearer')
  const former = machine.token()
  assert(former !== null)
  await machine.comeBack()
  assert.equal((await machine.node.confirm()).status, 200)
  const reply = await machine.recover({ credential: { kind: 'bearer', token: former } })
  assert.equal(reply.body.code, 'RECOVERY_UNKNOWN')
  assert.equal((await machine.comeBack()).body.epoch, 3)
})

test('a challenge of either listener is accepted; one for another node, or for none, is not', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'challenged')
  for (const challenge of [await askChallenge(machine.target), await askChallenge(machine.target, 'door-2')]) {
    assert.equal((await machine.recover({ challenge })).body.code, 'CHALLENGE_INVALID')
  }
  const challenge = await machine.challenge(machine.node.target)
  assert.equal((await machine.recover({ challenge })).status, 200)
})

test('an overheard proof gets its own machine its answer, and no other caller anything', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'overheard')
  const body = await machine.body()
  const ask = (changes: object) => nodeCall(machine.target, null, 'POST', '/v1/recover', { ...body, ...changes })
  assert.equal((await ask({ csr: makeCsr(generateKey('p256'), 'thief') })).body.code, 'RECOVERY_UNKNOWN')
  const given = await ask({})
  assert.equal(given.status, 200)
  // Replayed as it is, it is answered with what is public anyway.
  assert.equal((await ask({})).body.certificate_chain, given.body.certificate_chain)
  assert.equal((await shared().api('GET', '/v1/nodes/overheard')).body.epoch, 2)
})

test('a hundred callers at once are one epoch', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'crowded')
  const csr = makeCsr(generateKey('p256'), 'node')
  const replies = await Promise.all(Array.from({ length: 100 }, () => machine.recover({ csr })))
  const given = replies.filter(({ status }) => status === 200)
  assert.ok(given.length > 0)
  assert.equal(new Set(given.map(({ body }) => body.certificate_chain)).size, 1)
  assert.deepEqual(
    [...new Set(replies.filter(({ status }) => status !== 200).map(({ body }) => body.code))].filter(
      (code) => code !== 'RATE_LIMITED',
    ),
    [],
  )
  assert.equal((await shared().api('GET', '/v1/nodes/crowded')).body.epoch, 2)
})

test('a refusal belongs to the story of the machine that asked', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'refused')
  await shared().api('POST', '/v1/nodes/refused/quarantine', { reason: 'test' })
  assert.equal((await machine.recover()).body.code, 'NODE_QUARANTINED')
  // Written after the answer: the caller does not wait for it.
  const entry = await eventually('the refusal to be journaled', async () =>
    (await journalEntries(shared(), { node: 'refused', type: 'refused' })).at(-1),
  )
  assert.equal(entry?.correlation, 'story-refused')
  assert.equal(entry?.actor, 'node:refused')
})

test('an anonymous caller adds nothing to the history of a machine', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'told-of')
  const credential = { kind: 'bearer' as const, token: `recover_${'x'.repeat(43)}` }
  assert.equal((await machine.recover({ credential, correlation: 'story-told-of' })).body.code, 'RECOVERY_UNKNOWN')
  const entry = await eventually('the refusal to be journaled', async () =>
    (await journalEntries(shared(), { node: 'told-of', type: 'refused' })).at(-1),
  )
  assert.equal(entry?.actor, 'anonymous')
  assert.notEqual(entry?.correlation, 'story-told-of')
})

test('a quarantined node recovers with a repair bundle only, once, and may do nothing but show evidence', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'repaired')
  const made = await shared().api('POST', '/v1/nodes/repaired/repair-bundle', { reason: 'disk replaced' })
  assert.ok(made.status < 300, JSON.stringify(made.body))
  assert.deepEqual(made.body.recovery_urls, [shared().recoveryUrl])
  assert.deepEqual(made.body.recovery_roots, machine.target.roots)
  assert.equal((await machine.recover()).body.code, 'NODE_QUARANTINED')
  const credential = { kind: 'repair', token: made.body.recovery_token } as const
  const wrong = { kind: 'repair', token: `repair_${'a'.repeat(43)}` } as const
  assert.equal((await machine.recover({ credential: wrong })).body.code, 'REPAIR_TOKEN_INVALID')
  const key = generateKey('p256')
  const csr = makeCsr(key, 'node')
  const repaired = await machine.recover({ credential, csr })
  assert.equal(repaired.status, 200, JSON.stringify(repaired.body))
  assert.equal((await machine.recover({ credential })).body.code, 'REPAIR_TOKEN_INVALID')
  assert.equal((await machine.recover({ credential, csr })).body.certificate_chain, repaired.body.certificate_chain)
  machine.node.use({ keyPem: key.pkcs8Pem(), chainPem: repaired.body.certificate_chain })
  assert.equal((await machine.node.confirm()).status, 200)
  assert.equal((await machine.node.renew()).reply.body.code, 'NODE_QUARANTINED')
  assert.equal((await shared().api('GET', '/v1/nodes/repaired')).body.membership, 'quarantined')
})

test('a rehearsal passes and is recorded; one that would fail says where', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'rehearsed')
  assert.deepEqual((await machine.rehearse()).body, { outcome: 'passed', step: null, why: null })
  const failed = { outcome: 'failed', step: 'clock', why: 'clock_skew' }
  assert.deepEqual((await machine.rehearse({ clock_skew_ms: 3_600_000 })).body, failed)
  const { body } = await shared().api('GET', '/v1/nodes/rehearsed')
  assert.equal(body.epoch, 1)
  assert.ok(body.conditions.some(({ name }: { name: string }) => name === 'not_recoverable'))
})

test('a copy that recovers while no machine is connected gets both fenced, and both are named', async () => {
  await withRoom()
  const machine = await recoverableNode(shared(), 'copied')
  const counter = machine.counter()
  await machine.comeBack()
  assert.equal((await machine.node.confirm()).status, 200)
  const copy = await machine.recover({ counter, evidence: rawEvidence('the-copy') })
  assert.equal(copy.body.code, 'DUPLICATE_IDENTITY')
  const { body } = await shared().api('GET', '/v1/nodes/copied')
  assert.equal(body.membership, 'quarantined')
  const { evidence } = body.conditions.find(({ name }: { name: string }) => name === 'duplicate_identity')
  assert.match(evidence.claimant, /instance the-copy/)
  assert.equal((await machine.node.confirm()).body.code, 'NODE_QUARANTINED')
})

test('after a restart the trust of recovery is the same, and a counter from before is good', async (t) => {
  const plane = await startPlane(t)
  const machine = await recoverableNode(plane, 'n1')
  await plane.stop()
  const again = await plane.restart()
  assert.equal(again.recoveryUrl, plane.recoveryUrl)
  const reply = await machine.comeBack()
  assert.deepEqual(reply.body.recovery_trust.roots, machine.target.roots)
})
