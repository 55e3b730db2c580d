// A plane as a process under an issuer that lies: whatever the lie is, the node is told to come again, the journal has what was wrong, nothing
// is used up, and the node comes in with the same key and the same token once the issuer is honest.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { ViolatedField } from '#pki/returned-certificate.ts'
import { decimalSerial } from '#domain/issuers/serial.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { act, journalOf, makeToken, succeeded, tokenOf } from '../compliance/ask-plane.ts'
import { says, type Lie } from '../fakes/lying-issuer.ts'
import { startLyingStepCa, type Instead, type LyingStepCa, type StepCaLie } from '../fakes/lying-step-ca.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { storedCertificates } from '../process/plane-records.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { day, hierarchy } from '../vectors/pki-hierarchy.ts'

const profile = 'outside'

const setUp = shared(async (scope) => {
  const [there, plane] = await Promise.all([startLyingStepCa(scope), startPlane(scope)])
  const jwk = generateKey('p256').pkcs8Pem()
  succeeded(
    await plane.api('POST', '/v1/issuers', {
      ...{ name: 'corp', url: there.address, server_roots: there.serverRoots },
      roots: [toPem('CERTIFICATE', there.authorities.root.certificate.der)],
      step_ca: { provisioner: 'muster', renewal_provisioner: 'muster-renewal' },
      secrets: { provisioner_key: jwk },
    }),
  )
  const { passed, faults } = succeeded(await plane.api('POST', '/v1/issuers/corp/test', {}))
  assert.ok(passed, JSON.stringify(faults))
  const set = { 'certificate.issuer': 'corp' }
  succeeded(await plane.api('POST', '/v1/profiles', { name: profile, from: 'gpu-cloud', set }))
  return { there, plane }
})

type Asking = { readonly node: RawNode; readonly token: string; enroll(): ReturnType<RawNode['enrollByToken']> }

const invited = async (plane: Plane, id: string): Promise<Asking> => {
  const { id: token, secret } = await makeToken(plane, { node: id, profile })
  const node = rawNode(await plane.target())
  return { node, token, enroll: () => node.enrollByToken(secret) }
}

/** `field`: what is wrong with what came back; null: nothing came back that could be read. */
const lieTo = async (id: string, lie: (there: LyingStepCa) => StepCaLie, field: ViolatedField | null) => {
  const { there, plane } = setUp()
  const { node, token, enroll } = await invited(plane, id)
  there.lies.set(`node-${id}`, lie(there))
  const refused = await enroll()
  assert.deepEqual([refused.status, refused.body.code], [503, 'ISSUER_UNAVAILABLE'], JSON.stringify(refused.body))
  const violations = await journalOf(plane, { node: id, type: 'issuer.violation' })
  if (field === null) assert.deepEqual(violations, [])
  else assert.ok(violations[0]?.body.fields.includes(field), JSON.stringify(violations))
  assert.equal((await tokenOf(plane, token)).state, 'bound')
  assert.deepEqual(await storedCertificates(plane, id), [])
  const lost = there.signed.flatMap(({ serial, to }) => (to === `node-${id}` ? [serial] : []))

  there.lies.delete(`node-${id}`)
  succeeded(await enroll())
  succeeded(await node.confirm())
  assert.equal((await storedCertificates(plane, id)).length, 1)
  assert.equal((await tokenOf(plane, token)).state, 'used')
  return { lost }
}

const instead =
  (what: Instead | ((there: LyingStepCa) => Instead)): ((there: LyingStepCa) => StepCaLie) =>
  (there) =>
  (response, { signed }, asked) =>
    signed(typeof what === 'function' ? what(there) : what)(response, asked)

const answers =
  (lie: Lie) =>
  (): StepCaLie =>
  (response, { signed }, asked) => {
    signed()
    lie(response, asked)
  }

const stranger = hierarchy('p256', Date.now() - day)

const certificates: Readonly<Record<string, readonly [ViolatedField, ReturnType<typeof instead>]>> = {
  'for another key': ['publicKey', instead({ order: { publicKey: generateKey('p256').spki } })],
  'for another subject': ['subject', instead({ order: { subject: { cn: 'node-x', o: 'muster.local', ou: 'nodes' } } })],
  'with one more name': ['subjectAltName', instead({ order: { dnsSans: ['plane.example'] } })],
  'that lives longer': ['notAfter', instead({ order: { lifetimeMs: 2 * day } })],
  'that lives too short': ['notAfter', instead({ order: { lifetimeMs: day / 4 } })],
  'that has expired': ['notAfter', instead({ order: { issuedAtMs: Date.now() - 2 * day, lifetimeMs: day } })],
  'of a CA': [
    'basicConstraints',
    instead({ spec: (spec) => ({ ...spec, extensions: { ...spec.extensions, ca: { pathLen: null } } }) }),
  ],
  'with the chain of somebody else': ['chain', instead({ chain: [stranger.issuing, stranger.domainCa] })],
  'by somebody else': ['chain', instead({ by: stranger.issuing, chain: [stranger.issuing, stranger.domainCa] })],
  'by another key under the same name': [
    'chain',
    instead(({ authorities: { issuing } }) => ({ by: { ...issuing, key: generateKey('p256') } })),
  ],
  'with a serial that was there before': [
    'serial',
    instead(({ signed }) => ({ serial: signed[0]?.serial ?? assert.fail() })),
  ],
}

const died = 'the end of the connection'
const replies: Readonly<Record<string, Lie>> = {
  HTML: says(201, '<html>', 'text/html'),
  '10 MiB': says(201, Buffer.alloc(10 * 1024 * 1024, ' ').toString()),
  'a redirect to another host': (response) => void response.writeHead(308, { location: 'https://192.0.2.1/' }).end(),
  [died]: (response) => void response.destroy(),
}

describe('a certificate comes back', { concurrency: false }, () => {
  const lost: string[] = []
  for (const [at, [lie, [field, how]]] of Object.entries(certificates).entries())
    test(lie, async () => void lost.push(...(await lieTo(`lie-${at}`, how, field)).lost))

  test('each of them is revoked at the issuer, but the one that has the serial of another, and there is an alert', async () => {
    const { there, plane } = setUp()
    const [first] = there.signed
    for (const serial of lost.filter((one) => one !== first?.serial))
      await eventually(`${serial} to be revoked`, () => there.revoked.includes(serial))
    const { alerts } = succeeded(await plane.api('GET', '/v1/alerts'))
    assert.ok(alerts.some(({ kind, subject }: Json) => kind === 'issuer_violation' && subject === 'corp'))
  })
})

describe('it has signed, and what comes back is', { concurrency: false }, () => {
  let silent: Promise<unknown>
  before(() => {
    // It takes as long as an issuer is waited for, meanwhile the others run.
    silent = lieTo(
      'silent',
      answers(() => {}),
      null,
    )
    silent.catch(() => {})
  })
  for (const [at, [lie, how]] of Object.entries(replies).entries())
    test(lie, async () => {
      const { there } = setUp()
      const { lost } = await lieTo(`reply-${at}`, answers(how), null)
      const attempts = lie === died ? 2 : 1
      assert.equal(lost.length, attempts, 'a connection that dies is worth one more attempt, and nothing else is')
      for (const serial of lost) await eventually(`${serial} to be revoked`, () => there.revoked.includes(serial))
    })

  test('silence', async () => void (await silent))
})

test('a revocation that is answered with another serial is none: it is told, and repeated', async () => {
  const { there, plane } = setUp()
  const { node, enroll } = await invited(plane, 'revoked-1')
  succeeded(await enroll())
  succeeded(await node.confirm())
  const [{ serial } = assert.fail()] = await storedCertificates(plane, 'revoked-1')
  there.revokes = says(200, { status: 'ok', serial: decimalSerial('1f') })
  const { id } = await act(plane, 'revoked-1', 'revoke', { reason: 'stolen' })
  const [violation] = await eventually('the journal to have it', async () => {
    const all = await journalOf(plane, { type: 'issuer.violation' })
    const ofRevocation = all.filter(({ body }) => body.serial === serial)
    return ofRevocation.length > 0 && ofRevocation
  })
  assert.deepEqual(violation?.body.fields, ['serial'])
  const waiting = async () => succeeded(await plane.api('GET', `/v1/receipts/${id}`)).at_issuers
  assert.deepEqual(await waiting(), { passed_on: 0, waiting: 1, given_up: 0 })
  there.revokes = null
  await eventually('the true answer', async () => (await waiting()).passed_on === 1, { withinMs: 30_000 })
  assert.ok(there.revoked.includes(serial))
  const all = await journalOf(plane, { type: 'issuer.violation' })
  assert.equal(all.filter(({ body }) => body.serial === serial).length, 1, 'once, however often it is repeated')
})
