// A node whose profile is signed by an outside issuer: its whole life, what is refused meanwhile, and what becomes of lies.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as path from 'node:path'
import { test } from 'node:test'
import { certificateKey, slotsOf } from '#domain/core/certificate.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { Issued } from '#plane/identity/issue.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import { generateKey } from '#pki/keys.ts'
import { allFromPem, fromPem } from '#pki/pem.ts'
import { issuerAndSerial } from '#pki/parse-certificate.ts'
import { keyId } from '#pki/spki.ts'
import { verifyIssuedChain } from '#pki/verify-chain.ts'
import { haltIssuance, resumeIssuance } from '#plane/identity/issuance-routes.ts'
import { authorityRow, issuingBelow, type Lie } from '../fakes/fake-issuer.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { change } from '../store/harness.ts'
import { operator } from './authority-setup.ts'
import { setUpOutside, type OutsidePlane } from './outside-setup.ts'
import { codeOf, newCsr } from './recovery-setup.ts'

const issuedTo = (outcome: { readonly kind: string }): Issued => {
  assert.equal(outcome.kind, 'issued', JSON.stringify(outcome))
  return outcome as Issued
}

/** What the machine is handed, as it verifies it; and what the plane finds when the machine presents it. */
const isGood = async ({ deps, store, book }: OutsidePlane, { certificate }: Issued, nowMs: number): Promise<void> => {
  const { issuer } = deps
  const leaf = Buffer.from(certificate.der, 'base64')
  const chain = [leaf, ...issuer.chainOf(certificate.issuer)]
  const roots = allFromPem('CERTIFICATE', issuer.rootOf(certificate.issuer)) ?? []
  const verified = verifyIssuedChain({ chain, roots, purposes: ['clientAuth'], nowMs })
  assert.equal(verified.kind, 'trusted', JSON.stringify(verified))
  const presented = issuerAndSerial(leaf) ?? assert.fail()
  assert.notEqual(presented.issuer, certificate.issuer, 'the issuer names its key in its own way')
  const row = await store.get('certificate', certificateKey(book.idOf(presented.issuer), presented.serial))
  assert.equal(row?.value.der, certificate.der)
}

for (const takesSerial of [true, false]) {
  const whose = takesSerial ? 'serials of ours' : 'serials of its own'
  test(`a node lives under an outside issuer with ${whose}: enrolled, renewed twice, recovered, quarantined and released, revoked`, async (t) => {
    const { plane, fake, clock } = await setUpOutside(t, { takesSerial })
    const key = generateKey('p256')
    const { outcome, counter } = await plane.recoverable('n1', key)
    await isGood(plane, outcome, clock.nowMs())
    assert.equal(outcome.certificate.issuer, keyId(fake.issuing.key.spki))
    let newest = counter
    for (let renewed = 0; renewed < 2; renewed++) {
      const renewal = issuedTo(await plane.renew('n1', { counter: newest }))
      newest = plane.counterOf(renewal)
      await plane.firstUse('n1')
      await isGood(plane, renewal, clock.nowMs())
    }
    const recovered = issuedTo(await plane.recoverByKey(key, 'n1', newest))
    await isGood(plane, recovered, clock.nowMs())
    await plane.firstUse('n1')
    await plane.act('n1', 'quarantine')
    await plane.act('n1', 'release')
    issuedTo(await plane.recoverByKey(key, 'n1', plane.counterOf(recovered)))
    await plane.act('n1', 'revoke')
    assert.equal(codeOf(await plane.recoverByKey(key, 'n1', plane.counterOf(recovered))), 'NODE_REVOKED')

    assert.deepEqual(
      fake.asked.map(({ purpose }) => purpose),
      ['enrollment', 'renewal', 'renewal', 'recovery', 'recovery'],
    )
    const orders = await plane.orders()
    assert.ok(orders.every(({ state }) => state.kind === 'issued'))
    const serials = await plane.certified()
    assert.deepEqual(serials.toSorted(), fake.signed.map(({ serial }) => serial).toSorted())
    if (takesSerial) assert.deepEqual(fake.asked.map((one) => one.serial).toSorted(), serials.toSorted())
    assert.deepEqual(await plane.toBeRevoked(), [])
    assert.ok(fake.left.every(({ kind }) => kind === 'answered'))
    assert.equal((await plane.journal('order.placed')).length, 5)
  })
}

test('the request of the node goes to the issuer as it came', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const csr = newCsr()
  issuedTo(await plane.enroll(await plane.invite('n1'), csr, null))
  const [attempt] = fake.asked
  assert.deepEqual(Buffer.from(attempt?.request ?? []), Buffer.from(fromPem('CERTIFICATE REQUEST', csr) ?? []))
})

test('a request that asks for names itself is refused before anything is written for it', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { plane, fake } = await setUpOutside(t)
  const asked = ['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=any']
  const names = ['-addext', 'subjectAltName=DNS:plane.example']
  const csr = execFileSync(openssl, [...asked, ...names, '-keyout', path.join(tempFolder(t), 'key.pem')], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const outcome = await plane.enroll(await plane.invite('n1'), csr, null)
  assert.deepEqual([codeOf(outcome), fake.asked.length, await plane.orders()], ['CSR_INVALID', 0, []])
})

test('the same request at the same time is signed once, and both get the same certificate', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  const both = await Promise.all([plane.enroll(secret, csr, null), plane.enroll(secret, csr, null)])
  assert.equal(issuedTo(both[0]).certificate.der, issuedTo(both[1]).certificate.der)
  assert.equal(fake.signed.length, 1)
})

test('a token that is bound answers its own key only, and registers its node with the certificate', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  const { answer } = fake
  fake.answer = async () => ({ kind: 'unsigned', why: 'no' })
  assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'ISSUER_UNAVAILABLE')
  const [token] = await plane.rows('token')
  assert.equal(token?.state.kind, 'bound')
  assert.equal(codeOf(await plane.enroll(secret, newCsr(), null)), 'TOKEN_USED')
  fake.answer = answer
  issuedTo(await plane.enroll(secret, csr, null))
  const [used] = await plane.rows('token')
  assert.equal(used?.state.kind, 'used')
  assert.deepEqual(await plane.toBeRevoked(), [], 'what was not signed is not revoked')
})

test('a key that is ordered for one node is refused for another before anything is signed for it', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const csr = newCsr()
  fake.answer = async () => ({ kind: 'unsigned', why: 'no' })
  await plane.enroll(await plane.invite('n1'), csr, null)
  const other = await plane.enroll(await plane.invite('n2'), csr, null)
  assert.deepEqual([codeOf(other), fake.asked.length], ['KEY_IN_USE', 1])
})

// What comes back is a lie.

const lies: Readonly<Record<string, Lie>> = {
  publicKey: { order: { publicKey: generateKey('p256').spki } },
  subject: { order: { subject: { cn: 'node-n2', o: 'test.example', ou: 'nodes' } } },
  subjectAltName: { order: { dnsSans: ['plane.example'] } },
  extendedKeyUsage: { order: { usage: 'server' } },
  basicConstraints: { spec: (spec) => ({ ...spec, extensions: { ...spec.extensions, ca: { pathLen: null } } }) },
  notAfter: { spec: (spec) => ({ ...spec, notAfterMs: spec.notAfterMs + 3_600_000 }) },
  notBefore: { spec: (spec) => ({ ...spec, notBeforeMs: spec.notBeforeMs - 3_600_000 }) },
  serial: { serial: Uint8Array.of(0x17, ...new Uint8Array(15)) },
}

test('what is not what was ordered is refused with its field, revoked there, and consumes nothing', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  const every: Readonly<Record<string, Lie>> = { ...lies, chain: { by: { ...fake.issuing, key: generateKey('p256') } } }
  for (const [field, lie] of Object.entries(every)) {
    fake.answer = async (attempt) => fake.sign(attempt, lie)
    assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'ISSUER_UNAVAILABLE', field)
    const violation = (await plane.journal('issuer.violation')).at(-1)
    assert.ok(String(violation?.body['fields']).split(',').includes(field), JSON.stringify(violation?.body))
  }
  const signed = fake.signed.map(({ serial }) => serial)
  const outbox = await plane.rows('issuer-revocation')
  assert.deepEqual(
    signed.filter((serial) => !outbox.some((one) => one.serial === serial)),
    [],
  )
  const [alert] = await plane.rows('alert')
  assert.match(`${alert?.kind} ${alert?.reason}`, /^issuer_violation the issuer corp has answered/)
  assert.ok(outbox.every(({ why, state }) => why === 'violation' && state.kind === 'waiting'))
  assert.deepEqual(await plane.certified(), [])
  assert.equal((await plane.nodeNow('n1')).membership.kind, 'registered')
  assert.ok(fake.left.every(({ kind }) => kind === 'fault'))

  // The machine has done nothing wrong: with the same key and the same token it comes in.
  fake.answer = async (attempt) => fake.sign(attempt)
  issuedTo(await plane.enroll(secret, csr, null))
  assert.deepEqual(await plane.rows('key-ban'), [])
})

test('a serial that the issuer has used before is refused, and the certificate that has it is not revoked', async (t) => {
  const { plane, fake } = await setUpOutside(t, { takesSerial: false })
  const first = issuedTo(await plane.enroll(await plane.invite('n1'), newCsr(), null))
  const serial = Buffer.from(first.certificate.serial, 'hex')
  fake.answer = async (attempt) => fake.sign(attempt, { serial })
  assert.equal(codeOf(await plane.enroll(await plane.invite('n2'), newCsr(), null)), 'ISSUER_UNAVAILABLE')
  assert.deepEqual((await plane.journal('issuer.violation')).at(-1)?.body['fields'], ['serial'])
  assert.deepEqual(await plane.toBeRevoked(), [])
})

test('a shorter life is taken down to the least that the profile allows', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const shortened = (part: number): Lie => ({
    spec: (spec) => ({ ...spec, notAfterMs: spec.notBeforeMs + part * (spec.notAfterMs - spec.notBeforeMs) }),
  })
  fake.answer = async (attempt) => fake.sign(attempt, shortened(0.6))
  issuedTo(await plane.enroll(await plane.invite('n1'), newCsr(), null))
  fake.answer = async (attempt) => fake.sign(attempt, shortened(0.4))
  assert.equal(codeOf(await plane.enroll(await plane.invite('n2'), newCsr(), null)), 'ISSUER_UNAVAILABLE')
  assert.deepEqual((await plane.journal('issuer.violation')).at(-1)?.body['fields'], ['notAfter'])
})

test('an issuing CA that is new below a root on record is recorded with the first leaf that it signs', async (t) => {
  const { plane, fake, clock } = await setUpOutside(t)
  const next = issuingBelow(fake.root, clock.nowMs())
  fake.answer = async (attempt) => fake.sign(attempt, { by: next })
  const outcome = issuedTo(await plane.enroll(await plane.invite('n1'), newCsr(), null))
  await isGood(plane, outcome, clock.nowMs())
  assert.equal((await plane.store.get('issuer', keyId(next.key.spki)))?.value.role, 'outside-issuing')
  assert.equal((await plane.journal('issuer.authority_recorded')).length, 1)
})

test('two orders at once are signed by an issuing CA that nobody has seen: one records it, and both nodes have their certificates', async (t) => {
  const { plane, fake, clock } = await setUpOutside(t)
  const next = issuingBelow(fake.root, clock.nowMs())
  const both = Promise.withResolvers<void>()
  fake.answer = async (attempt) => {
    const answer = fake.sign(attempt, { by: next })
    if (fake.signed.length === 2) both.resolve()
    await both.promise
    return answer
  }
  const secrets = [await plane.invite('n1'), await plane.invite('n2')]
  const outcomes = await Promise.all(secrets.map((secret) => plane.enroll(secret, newCsr(), null)))
  for (const outcome of outcomes) await isGood(plane, issuedTo(outcome), clock.nowMs())
  assert.equal((await plane.journal('issuer.authority_recorded')).length, 1)
  assert.deepEqual([fake.signed.length, await plane.toBeRevoked()], [2, []])
})

test('an issuer that has an authority for every leaf is stopped at the 64th', async (t) => {
  const { plane, fake, clock } = await setUpOutside(t)
  const more = Array.from({ length: 62 }, () => authorityRow(issuingBelow(fake.root, clock.nowMs()), fake.root))
  await plane.store.commit({
    reads: more.map(({ id }) => ({ row: 'issuer', key: id, version: 0 }) as const),
    writes: more.map((value) => ({ put: 'issuer', value }) as const),
    entries: change([], []).entries,
  })
  await plane.book.lookAgain()
  fake.answer = async (attempt) => fake.sign(attempt, { by: issuingBelow(fake.root, clock.nowMs()) })
  assert.equal(codeOf(await plane.enroll(await plane.invite('n1'), newCsr(), null)), 'ISSUER_UNAVAILABLE')
  assert.deepEqual((await plane.journal('issuer.violation')).at(-1)?.body['fields'], ['chain'])
  fake.answer = async (attempt) => fake.sign(attempt)
  issuedTo(await plane.enroll(await plane.invite('n2'), newCsr(), null))
})

// What is refused between the intent and the certificate.

test('a node that is revoked while its issuer signs gets nothing, and what was signed is revoked there', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const key = generateKey('p256')
  const { counter } = await plane.recoverable('n1', key)
  fake.answer = async (attempt) => {
    const answer = fake.sign(attempt)
    await plane.act('n1', 'revoke')
    return answer
  }
  assert.equal(codeOf(await plane.recoverByKey(key, 'n1', counter)), 'NODE_REVOKED')
  const [, lost] = fake.signed
  assert.deepEqual(await plane.toBeRevoked(), [lost?.serial])
  await plane.sweep()
  const order = (await plane.orders()).find(({ spki }) => spki === lost?.spki)
  assert.equal(order?.state.kind, 'abandoned')
  assert.notEqual(await plane.store.get('key-ban', lost?.spki ?? ''), null, 'nobody is to use what may be out there')
})

test('a halt that comes while the issuer signs is obeyed, and the node goes on afterwards', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  fake.answer = async (attempt) => {
    const answer = fake.sign(attempt)
    await haltIssuance(plane.deps, { reason: 'wait', renewals: false }, operator)
    return answer
  }
  assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'ISSUANCE_HALTED')
  assert.deepEqual(await plane.toBeRevoked(), [fake.signed[0]?.serial])
  await resumeIssuance(plane.deps, operator)
  fake.answer = async (attempt) => fake.sign(attempt)
  issuedTo(await plane.enroll(secret, csr, null))
  assert.deepEqual(await plane.rows('key-ban'), [])
})

test('an issuer that is tested while it signs costs no certificate; one that is disabled signs none', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const { store } = plane
  let state: OutsideIssuer['state'] = { kind: 'enabled' }
  fake.answer = async (attempt) => {
    const answer = fake.sign(attempt)
    const row = (await store.get('outside-issuer', fake.issuer.name)) ?? assert.fail()
    const written = await store.commit({
      reads: [{ row: 'outside-issuer', key: fake.issuer.name, version: row.version }],
      writes: [{ put: 'outside-issuer', value: { ...row.value, state } }],
      entries: [{ ...(await plane.journal('order.placed'))[0], type: 'issuer.tested' } as never],
    })
    assert.notEqual(written, 'lost-race')
    return answer
  }
  issuedTo(await plane.enroll(await plane.invite('n1'), newCsr(), null))
  assert.deepEqual([fake.asked.length, await plane.toBeRevoked()], [1, []])
  state = { kind: 'disabled', sinceMs: 0, by: 'operator', why: 'it is moved' }
  assert.equal(codeOf(await plane.enroll(await plane.invite('n2'), newCsr(), null)), 'ISSUER_UNAVAILABLE')
  assert.deepEqual([fake.asked.length, await plane.toBeRevoked()], [2, [fake.signed[1]?.serial]])
})

test('a profile that asks for other names meanwhile gets a certificate with those', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const { store } = plane
  fake.answer = async (attempt) => {
    fake.answer = async (next) => fake.sign(next)
    const row = (await store.get('profile', 'gpu-cloud')) ?? assert.fail()
    const { certificate } = row.value
    const value = { ...row.value, certificate: { ...certificate, subject: { ...certificate.subject, ou: 'others' } } }
    await store.commit({
      reads: [{ row: 'profile', key: 'gpu-cloud', version: row.version }],
      writes: [{ put: 'profile', value }],
      entries: [{ ...(await plane.journal('order.placed'))[0], type: 'profile.changed' } as never],
    })
    return fake.sign(attempt)
  }
  const outcome = issuedTo(await plane.enroll(await plane.invite('n1'), newCsr(), null))
  assert.deepEqual([fake.signed.length, outcome.certificate.serial], [2, fake.signed[1]?.serial])
  assert.deepEqual(await plane.toBeRevoked(), [fake.signed[0]?.serial])
})

// Keys that are not repeated.

test('another key ends an order that was lost, and the key of it is banned', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const { outcome } = await plane.recoverable('n1', generateKey('p256'))
  const { answer } = fake
  fake.answer = async (attempt) => {
    fake.sign(attempt)
    throw new IssuerFault('the connection died', 'cut', false)
  }
  assert.equal(codeOf(await plane.renew('n1')), 'ISSUER_UNAVAILABLE')
  const lost = fake.signed.at(-1)
  assert.equal(fake.signed.length, 3, 'one more attempt was made, under another serial')
  assert.notEqual(fake.signed[1]?.serial, lost?.serial)
  fake.answer = answer
  const renewed = issuedTo(await plane.renew('n1'))
  assert.notEqual(renewed.certificate.spki, lost?.spki)
  assert.notEqual(await plane.store.get('key-ban', lost?.spki ?? ''), null)
  assert.deepEqual(
    (await plane.toBeRevoked()).toSorted(),
    fake.signed
      .slice(1, 3)
      .map(({ serial }) => serial)
      .toSorted(),
  )
  assert.equal(slotsOf(await plane.nodeNow('n1'))?.current.serial, outcome.certificate.serial)
})

test('an order that nobody repeats ends by itself, and bars nothing any more', async (t) => {
  const { plane, fake, clock } = await setUpOutside(t)
  fake.answer = async (attempt) => {
    fake.sign(attempt)
    throw new Error('the connection died')
  }
  await plane.enroll(await plane.invite('n1'), newCsr(), null)
  await plane.sweep()
  assert.deepEqual(
    (await plane.orders()).map(({ state }) => state.kind),
    ['lost'],
  )
  clock.advance(2 * 86_400_000)
  await plane.sweep()
  assert.deepEqual(
    (await plane.orders()).map(({ state }) => state.kind),
    ['abandoned'],
  )
  assert.deepEqual(await plane.rows('key-ban'), [])
})

test('a profile that goes back to the authority of the domain takes its node along with the key that was ordered', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  fake.answer = async () => {
    throw new Error('the connection died')
  }
  await plane.enroll(secret, csr, null)
  await plane.signedBy('built-in')
  const outcome = issuedTo(await plane.enroll(secret, csr, null))
  assert.notEqual(outcome.certificate.issuer, keyId(fake.issuing.key.spki))
  const [order] = await plane.orders()
  assert.deepEqual([order?.state.kind, await plane.rows('key-ban')], ['replaced', []])
})
