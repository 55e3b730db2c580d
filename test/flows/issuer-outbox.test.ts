// Revocations on their way to outside issuers: what is denied here reaches them whichever flow denied it, in spite of faults, restarts and
// certificates that end meanwhile.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { certificateKey, slotOf, type CertificateRow, type Denial } from '#domain/core/certificate.ts'
import type { Write } from '#domain/core/change.ts'
import { issuerRevocationKey, type IssuerRevocation } from '#domain/issuers/issuer-revocation.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { AnotherSerial } from '#plane/issuers/outside-signer.ts'
import { openOutsideBook } from '#plane/issuers/outside-book.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { signingOrder } from '../fakes/issuer-rows.ts'
import { outsideRoot } from '../fakes/scripted-issuers.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { change, putNode, someCertificate } from '../store/harness.ts'
import { day, hour } from './authority-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'

const setUp = async (t: TestContext) => {
  const plane = await setUpOperatorServer(t)
  const { clock, core, store, timers, scripted, issuers } = plane
  const root = outsideRoot('Corp Root', clock.nowMs())
  const corp = {
    ...{ name: 'corp', url: 'https://ca.corp.example:9000', server_roots: [root.pem], roots: [root.pem] },
    step_ca: { provisioner: 'muster', renewal_provisioner: 'muster-renewals' },
    secrets: { provisioner_key: 'a key' },
  }
  const ask = (method: string, at: string, body?: object) => plane.call('platform-admin', method, at, body)
  assert.equal((await ask('POST', '/v1/issuers', corp)).status, 201)
  const { id } = (await store.get('outside-issuer', 'corp'))?.value ?? assert.fail()

  const book = await openOutsideBook(core)
  const commit = async (writes: readonly Write[]): Promise<void> => {
    const reads = await Promise.all(
      writes.map(async ({ put, value }) => {
        const key = tableShapes[put].key(value as never)
        return { row: put, key, version: (await store.get(put, key))?.version ?? 0 }
      }),
    )
    assert.notEqual(await commitOnce(core, change(reads, writes)), 'lost-race')
  }
  /** Signed by the outside issuer for this node. */
  const signed = async (
    serial: string,
    node: string,
    lastsMs = day,
    subject: CertificateRow['subject'] = { kind: 'node', node, epoch: 1 },
  ): Promise<CertificateRow> => {
    const nowMs = clock.nowMs()
    const order = signingOrder({
      ...{ id: `order-${serial}`, issuer: id, issuedAtMs: nowMs, lifetimeMs: lastsMs },
      subject,
      state: { kind: 'issued', serial, atMs: nowMs },
      attempts: [{ serial, atMs: nowMs, fate: { kind: 'kept', serial } }],
    })
    const row = someCertificate(serial, {
      ...{ issuer: root.id, order: order.id, spki: `key-${serial}`, issuedAtMs: nowMs, notAfterMs: nowMs + lastsMs },
      subject: order.subject,
    })
    await commit([
      { put: 'order', value: order },
      { put: 'certificate', value: row },
    ])
    return row
  }
  const active = (node: string, current: CertificateRow): Promise<void> => {
    const slots = { current: slotOf(current), pending: null, retired: null }
    const membership = { kind: 'active', sinceMs: clock.nowMs(), slots } as const
    return commit([putNode(node, { epoch: 1, counter: 1, membership })])
  }
  const lead = (leading = core) => {
    const led = issuers.lead(leading, book)
    cleanup(t, async () => led.stop())
    return led
  }
  const revocation = async (serial: string): Promise<IssuerRevocation | undefined> =>
    (await store.get('issuer-revocation', issuerRevocationKey({ issuer: id, serial })))?.value
  /** Time passes in steps of a second, as upkeep has it. */
  const after = <T>(what: string, probe: () => T | Promise<T>) =>
    eventually(what, () => {
      timers.advance(1000)
      return probe()
    })
  return { ...{ plane, core, root, id, ask, commit, signed, active, lead, revocation, after, scripted, clock, store } }
}

test('a revoked node is revoked at its issuer, with every certificate of its epoch, and the receipt says so', async (t) => {
  const { plane, ask, signed, active, lead, after, scripted, revocation, clock, store } = await setUp(t)
  await signed('a1', 'gpu-001')
  await active('gpu-001', await signed('a2', 'gpu-001'))
  await active('gpu-002', await signed('b1', 'gpu-002'))
  lead()
  const revoked = await ask('POST', '/v1/nodes/gpu-001/revoke', { reason: 'stolen' })
  assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  assert.deepEqual(revoked.body.at_issuers, { passed_on: 0, waiting: 1, given_up: 0 })
  await after('both at the issuer', () => scripted.revoked.length === 2)
  assert.deepEqual(scripted.revoked.toSorted(), ['corp a1', 'corp a2'])
  await after('done', async () => (await revocation('a2'))?.state.kind === 'done')
  await after('done', async () => (await revocation('a1'))?.state.kind === 'done')
  const { body } = await ask('GET', `/v1/receipts/${revoked.body.id}`)
  assert.deepEqual(body.at_issuers, { passed_on: 2, waiting: 0, given_up: 0 })
  assert.equal((await plane.journal('issuer.revocation_queued')).length, 1)
  assert.equal((await plane.journal('issuer.revoked')).length, 2)
  // Nothing waits when all of it is forgotten.
  clock.advance(60 * day)
  await store.forget(clock.nowMs())
  assert.equal(await revocation('a2'), undefined)
  const later = await ask('GET', `/v1/receipts/${revoked.body.id}`)
  assert.deepEqual([later.status, later.body.at_issuers], [200, undefined])
})

test('leaves of programs are revoked with their node, and a leader that comes later finds the receipt', async (t) => {
  const { ask, commit, signed, active, lead, after, scripted, revocation } = await setUp(t)
  await active('gpu-001', await signed('a1', 'gpu-001'))
  const of = { node: 'gpu-001', epoch: 1, output: 'web' }
  const leaf = await signed('a2', 'gpu-001', day, { kind: 'program', ...of })
  await commit([
    { put: 'program', value: { ...of, current: { ...slotOf(leaf), names: [] }, former: null, ended: null } },
  ])
  const revoked = await ask('POST', '/v1/nodes/gpu-001/revoke', { reason: 'stolen' })
  assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  // Whoever led until then has gone with it.
  lead()
  await after('both at the issuer', () => scripted.revoked.length === 2)
  await after('done', async () => (await revocation('a1'))?.state.kind === 'done')
  await after('done', async () => (await revocation('a2'))?.state.kind === 'done')
  const { body } = await ask('GET', `/v1/receipts/${revoked.body.id}`)
  assert.deepEqual(body.at_issuers, { passed_on: 2, waiting: 0, given_up: 0 })
})

test('one that the issuer does not take is tried again later and holds up none of the others, and is given up when it has ended', async (t) => {
  const { ask, signed, active, lead, after, scripted, revocation, clock } = await setUp(t)
  for (const serial of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']) await signed(serial, 'gpu-001', 2 * hour)
  await active('gpu-001', await signed('a7', 'gpu-001'))
  for (const serial of ['a1', 'a2', 'a3', 'a4', 'a5']) scripted.failing.set(serial, 'no answer within 15 s')
  lead()
  await ask('POST', '/v1/nodes/gpu-001/revoke', { reason: 'stolen' })
  await after('the others', () => scripted.revoked.length === 2)
  assert.deepEqual(scripted.revoked.toSorted(), ['corp a6', 'corp a7'])
  await after('five left', async () => (await ask('GET', '/v1/issuers/corp')).body.revocations_waiting === 5)
  scripted.failing.delete('a1')
  await after('the one that works again', () => scripted.revoked.includes('corp a1'))
  clock.advance(2 * hour)
  await after('given up', async () => (await revocation('a5'))?.state.kind === 'given-up')
  // An issuer that cannot revoke can still sign.
  assert.equal((await ask('GET', '/v1/issuers/corp')).body.health.away_since, null)
})

test('a denial whose certificates cannot be queued yet is looked at again', async (t) => {
  const { plane, ask, signed, active, lead, after, scripted, store } = await setUp(t)
  await active('gpu-001', await signed('a1', 'gpu-001'))
  let lost = 0
  const { commit } = store
  const losing = t.mock.method(plane.core.store, 'commit', (...asked: Parameters<typeof commit>) => {
    if (!asked[0].writes.some(({ put }) => put === 'issuer-revocation')) return commit(...asked)
    lost++
    return Promise.resolve('lost-race' as const)
  })
  lead()
  await ask('POST', '/v1/nodes/gpu-001/revoke', { reason: 'stolen' })
  await after('eight lost races', () => lost >= 8)
  losing.mock.restore()
  await after('revoked', () => scripted.revoked.includes('corp a1'))
})

test('an answer about another serial revokes nothing: it is a violation, journaled once, with an alert', async (t) => {
  const { plane, ask, signed, active, lead, after, scripted, revocation } = await setUp(t)
  await active('gpu-001', await signed('a1', 'gpu-001'))
  scripted.failing.set('a1', new AnotherSerial('a1', 'b2'))
  lead()
  await ask('POST', '/v1/nodes/gpu-001/revoke', { reason: 'stolen' })
  const said = async () => (await plane.journal('issuer.violation')).map(({ body }) => body['violations'])
  await after('the violation', async () => (await said()).length > 0)
  assert.equal((await revocation('a1'))?.state.kind, 'waiting')
  const alert = async () => (await plane.store.get('alert', 'issuer_violation/corp'))?.value
  await after('the alert', async () => (await alert()) !== undefined)
  assert.match((await alert())?.reason ?? '', /asked about the serial a1 and answered about b2/)
  scripted.failing.delete('a1')
  await after('revoked', async () => (await revocation('a1'))?.state.kind === 'done')
  assert.equal((await said()).length, 1)
})

test('a leader that dies between denial, row and answer leaves it to the next one, and no serial is lost', async (t) => {
  const { ask, signed, active, lead, after, scripted, revocation, commit, clock, store } = await setUp(t)
  const denied = await signed('c1', 'gpu-003')
  await active('gpu-001', await signed('a1', 'gpu-001'))
  // Nobody leads: the denials are there, and nothing else.
  const revoked = await ask('POST', '/v1/nodes/gpu-001/revoke', { reason: 'stolen' })
  const denial: Denial = {
    ...{ kind: 'certificate', issuer: denied.issuer, serial: 'c1', atMs: clock.nowMs() },
    ...{ untilMs: denied.notAfterMs, why: 'its key is banned', reason: 'key-compromise' },
  }
  await commit([{ put: 'denial', value: denial }])
  assert.equal(await revocation('a1'), undefined)
  let asked = 0
  scripted.onRevoke = () => new Promise(() => void asked++)
  const first = lead()
  await after('asked', () => asked === 2)
  assert.deepEqual((await revocation('c1'))?.reason, 'key-compromise')
  await first.stop()
  scripted.onRevoke = async () => {}
  lead()
  await after('both', () => scripted.revoked.length === 2)
  await after('written down', async () => (await revocation('a1'))?.state.kind === 'done')
  assert.equal((await revocation('a1'))?.receipt, revoked.body.id)
  assert.ok((await store.get('certificate', certificateKey(denied.issuer, 'c1'))) !== null)
})

test('a leader that begins reads nothing about denials of what was signed here', async (t) => {
  const { core, signed, lead, after, scripted, commit, clock, store } = await setUp(t)
  const theirs = await signed('c1', 'gpu-003')
  const denialOf = (issuer: string, serial: string): Write => ({
    put: 'denial',
    value: {
      ...{ kind: 'certificate', issuer, serial, atMs: clock.nowMs(), untilMs: theirs.notAfterMs },
      ...{ why: 'replaced by two later ones', reason: 'superseded' },
    },
  })
  await commit([...['d1', 'd2', 'd3'].map((serial) => denialOf('ours', serial)), denialOf(theirs.issuer, 'c1')])
  const read: string[] = []
  const get: typeof store.get = (kind, key) => {
    if (kind === 'certificate') read.push(key)
    return store.get(kind, key)
  }
  lead({ ...core, store: { ...store, get } })
  await after('the other at its issuer', () => scripted.revoked.length === 1)
  assert.deepEqual([...new Set(read)], [certificateKey(theirs.issuer, 'c1')])
})

test('orphans are listed with what became of their revocation', async (t) => {
  const { ask, id, commit, lead, after, scripted, clock } = await setUp(t)
  const atMs = clock.nowMs()
  const order = signingOrder({
    ...{ id: 'o1', issuer: id, issuedAtMs: atMs, lifetimeMs: day },
    state: { kind: 'lost', why: 'the plane that held it is gone', sinceMs: atMs },
    attempts: [
      { serial: 'd1', atMs, fate: { kind: 'orphan', serial: 'd1' } },
      { serial: null, atMs, fate: { kind: 'may-exist', untilMs: atMs + day } },
    ],
  })
  const row: IssuerRevocation = {
    ...{
      issuer: id,
      serial: 'd1',
      reason: 'superseded',
      why: 'orphan',
      order: 'o1',
      receipt: null,
      atMs,
      untilMs: atMs + day,
    },
    state: { kind: 'waiting' },
  }
  await commit([
    { put: 'order', value: order },
    { put: 'issuer-revocation', value: row },
  ])
  const listed = async () =>
    (await ask('GET', '/v1/issuer-orphans')).body.orphans.map(
      ({ issuer, serial, fate, revocation }: Record<string, unknown>) => [issuer, serial, fate, revocation],
    )
  assert.deepEqual(await listed(), [
    ['corp', 'd1', 'orphan', 'waiting'],
    ['corp', null, 'may-exist', null],
  ])
  lead()
  await after('revoked', () => scripted.revoked.includes('corp d1'))
  await after('listed so', async () => (await listed())[0][3] === 'done')
})
