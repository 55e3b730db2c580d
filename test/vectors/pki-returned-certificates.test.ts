// What an outside issuer may return instead of what was ordered. Every lie is sound by itself and correctly signed, and has to be found in the field
// that lies.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OrderDraft } from '#domain/core/certificate.ts'
import { issuingSpec, rootLifetimeMs, rootSpec } from '#pki/authority-certificates.ts'
import { buildCertificate, fingerprint } from '#pki/certificate.ts'
import { context, tags } from '#pki/der.ts'
import { bool, constructed, type Der, namedBits, oid, raw, sequence, smallNumber, text } from '#pki/der-writer.ts'
import { generateKey, keyId } from '#pki/keys.ts'
import { oids } from '#pki/oids.ts'
import { judgeReturned, returnedSerial, type ReturnedFacts, type ReturnedVerdict } from '#pki/returned-certificate.ts'
import { authority, day, type Held, hierarchy, hold, leaf, nodeOrder, nowMs, parsed } from './pki-hierarchy.ts'
import { extension, field, without, withExtensions, withField } from './pki-rewrite-certificate.ts'

const hour = 3_600_000
const minute = 60_000
const outside = hierarchy('p256', nowMs - day)
const key = generateKey('ed25519')
const order = nodeOrder(key, {})
const above = [outside.issuing, outside.domainCa].map(({ certificate }) => certificate.der)
const root = outside.root.certificate.der

/** What such an order would have got. */
const signed = (change: Partial<OrderDraft> = {}, by: Held = outside.issuing, of = key): Uint8Array =>
  leaf(of, nodeOrder(of, change), by).certificate.der
const good = signed()
const goodSerial = parsed(good).serial

const facts = (more: Partial<ReturnedFacts>): ReturnedFacts => ({
  order,
  chain: [good, ...above],
  roots: [root],
  withdrawn: [],
  serial: null,
  isOnRecord: false,
  answeredAtMs: nowMs + 2000,
  clock: { aheadMs: null, toleranceMs: 0 },
  leastLifetimeMs: 12 * hour,
  ...more,
})
const judge = (der: Uint8Array, more: Partial<ReturnedFacts> = {}): ReturnedVerdict =>
  judgeReturned(facts({ chain: [der, ...above], ...more }))

const changed = (edit: (all: Der[]) => Der[]): Uint8Array => withExtensions(good, outside.issuing.key, edit)
const added = (id: string, critical = false): Uint8Array =>
  changed((all) => [...all, extension(id, critical, sequence(smallNumber(1)))])
const instead = (id: string, value: Der): Uint8Array =>
  changed((all) => [...without(id, all), extension(id, true, value)])

const attribute = (id: string, value: string, tag: number = tags.printableString): Der =>
  sequence(oid(id), text(tag, value))
const named = (...parts: readonly (readonly Der[])[]): Uint8Array =>
  withField(good, outside.issuing.key, field.subject, sequence(...parts.map((one) => constructed(tags.set, one))))
const ou = attribute(oids.organizationalUnit, 'nodes')
const o = attribute(oids.organization, 'example.test')
const cn = attribute(oids.commonName, 'node-gpu-001')

describe('what was ordered is taken', () => {
  test('as our own authority signs it, with the way up to the root', () => {
    const verdict = judge(good)
    assert.ok(verdict.kind === 'as-ordered', JSON.stringify(verdict))
    assert.deepEqual(
      [verdict.above.map(({ sha256 }) => sha256), verdict.shortByMs],
      [[...above, root].map(fingerprint), 0],
    )
  })

  test('with the root behind the chain', () => {
    assert.equal(judgeReturned(facts({ chain: [good, ...above, root] })).kind, 'as-ordered')
  })

  test('with the parts of its name in another order and as other strings', () => {
    assert.equal(judge(named([o], [ou], [cn])).kind, 'as-ordered')
  })

  test('with policies, and with the extension of step-ca', () => {
    for (const id of [oids.certificatePolicies, oids.stepProvisioner]) assert.equal(judge(added(id)).kind, 'as-ordered')
  })

  test('by an authority that is limited to clients', () => {
    const clients = limitedTo('clientAuth')
    const chain = [signed({}, clients), clients.certificate.der, outside.domainCa.certificate.der]
    assert.equal(judgeReturned(facts({ chain })).kind, 'as-ordered')
  })

  test('with a shorter life that the profile can do with; more than two minutes are said', () => {
    for (const [lifetimeMs, shortByMs] of [
      [16 * hour, 8 * hour],
      [day - minute, 0],
    ] as const) {
      const verdict = judge(signed({ lifetimeMs }))
      assert.deepEqual([verdict.kind, 'shortByMs' in verdict && verdict.shortByMs], ['as-ordered', shortByMs])
    }
  })

  test('under the serial number that was chosen', () => {
    assert.equal(judge(good, { serial: goodSerial }).kind, 'as-ordered')
  })
})

test('a certificate is looked up by the key of its issuer, whichever name that has', () => {
  const found = { issuer: keyId(outside.issuing.certificate.spki), serial: goodSerial }
  assert.deepEqual(returnedSerial(facts({})), found)
  const flat = [signed({}, outside.root)]
  assert.equal(returnedSerial(facts({ chain: flat }))?.issuer, keyId(outside.root.certificate.spki))
  for (const chain of [[], [good], [Buffer.from('<html>')]]) assert.equal(returnedSerial(facts({ chain })), null)
})

const limitedTo = (usage: 'clientAuth' | 'serverAuth'): Held => {
  const spec = issuingSpec(authority(outside.issuing.key, 300 * day, nowMs - day), outside.domainCa.certificate)
  const limited = { ...spec, extensions: { ...spec.extensions, extendedKeyUsage: [usage] } }
  return hold(outside.issuing.key, limited, outside.domainCa.key)
}

/** A root with the name of ours and a key of its own. */
const impostor = (): Held => {
  const rootKey = generateKey('p256')
  const spec = rootSpec({ ...authority(rootKey, rootLifetimeMs, nowMs - day), pathLen: 2 })
  const name = raw(outside.root.certificate.subjectName)
  const own = buildCertificate(spec, rootKey)
  return {
    key: rootKey,
    certificate: parsed(withField(withField(own, rootKey, field.subject, name), rootKey, field.issuer, name)),
  }
}

const san = (...all: readonly Der[]): Uint8Array => instead(oids.subjectAltName, sequence(...all))
const uri = text(context(6), 'spiffe://example.test/node/gpu-001')
const otherKey = generateKey('ed25519')
const fake = impostor()
const serversOnly = limitedTo('serverAuth')
const stranger = hierarchy('p256', nowMs - day)

type Lie = { readonly lie: string; readonly fields: readonly string[] } & (
  | { readonly der: Uint8Array; readonly more?: Partial<ReturnedFacts> }
  | { readonly chain: readonly Uint8Array[]; readonly more?: Partial<ReturnedFacts> }
)

const lies: readonly Lie[] = [
  { lie: 'HTML', fields: ['encoding'], der: Buffer.from('<html><body>502</body></html>') },
  { lie: 'nothing', fields: ['encoding'], chain: [] },
  { lie: 'more than a certificate has', fields: ['encoding'], der: new Uint8Array(20_000) },
  { lie: 'another key', fields: ['publicKey'], der: signed({}, outside.issuing, otherKey) },
  {
    lie: 'the name of another node',
    fields: ['subject'],
    der: named([attribute(oids.commonName, 'node-gpu-002')], [o], [ou]),
  },
  {
    lie: 'a part of the name too many',
    fields: ['subject'],
    der: named([cn], [o], [ou], [attribute(oids.organizationalUnit, 'workers')]),
  },
  { lie: 'a part of the name too few', fields: ['subject'], der: named([cn], [ou]) },
  { lie: 'two values in one part of the name', fields: ['subject'], der: named([cn], [ou, o]) },
  {
    lie: 'a serial number of a subject',
    fields: ['subject'],
    der: named([cn], [o], [ou], [attribute('2.5.4.5', '1')]),
  },
  { lie: 'no name', fields: ['subject'], der: named() },
  { lie: 'another URI', fields: ['subjectAltName'], der: signed({ uriSans: ['spiffe://example.test/node/gpu-002'] }) },
  {
    lie: 'the mark of the plane besides',
    fields: ['subjectAltName'],
    der: signed({ uriSans: [...order.uriSans, 'spiffe://example.test/plane'] }),
  },
  { lie: 'a DNS name besides', fields: ['subjectAltName'], der: signed({ dnsSans: ['gpu-001.example.test'] }) },
  { lie: 'an address besides', fields: ['subjectAltName'], der: signed({ ipSans: ['192.0.2.7'] }) },
  { lie: 'a mail address besides', fields: ['subjectAltName'], der: san(uri, text(context(1), 'root@example.test')) },
  { lie: 'the same URI twice', fields: ['subjectAltName'], der: san(uri, uri) },
  { lie: 'no alternative name', fields: ['subjectAltName'], der: signed({ uriSans: [] }) },
  { lie: 'a CA', fields: ['basicConstraints'], der: instead(oids.basicConstraints, sequence(bool(true))) },
  { lie: 'a key that signs certificates', fields: ['keyUsage'], der: instead(oids.keyUsage, namedBits([0, 5])) },
  { lie: 'a key usage that is left out', fields: ['keyUsage'], der: changed((all) => without(oids.keyUsage, all)) },
  { lie: 'a server', fields: ['extendedKeyUsage'], der: signed({ usage: 'server' }) },
  { lie: 'a client that is a server as well', fields: ['extendedKeyUsage'], der: signed({ usage: 'both' }) },
  {
    lie: 'purposes that are left out',
    fields: ['extendedKeyUsage'],
    der: changed((all) => without(oids.extendedKeyUsage, all)),
  },
  {
    lie: 'any purpose',
    fields: ['extendedKeyUsage'],
    der: instead(oids.extendedKeyUsage, sequence(oid(oids.clientAuth), oid('2.5.29.37.0'))),
  },
  { lie: 'a longer life', fields: ['notAfter'], der: signed({ lifetimeMs: day + minute }) },
  { lie: 'a life that is too short', fields: ['notAfter'], der: signed({ lifetimeMs: 11 * hour }) },
  {
    lie: 'a certificate that has ended',
    fields: ['notAfter', 'notBefore'],
    der: signed({ issuedAtMs: nowMs - 2 * hour, lifetimeMs: hour }),
  },
  {
    lie: 'one that begins too long ago',
    fields: ['notBefore'],
    der: signed({ issuedAtMs: nowMs - 5 * minute, lifetimeMs: day + 5 * minute }),
  },
  {
    lie: 'one that begins in the future',
    fields: ['notBefore'],
    der: signed({ issuedAtMs: nowMs + 5 * minute, lifetimeMs: 20 * hour }),
  },
  { lie: 'an extension of its own', fields: ['extensions'], der: added('1.3.6.1.4.1.99999.1') },
  { lie: 'a critical extension of its own', fields: ['extensions'], der: added('1.3.6.1.4.1.99999.1', true) },
  { lie: 'name constraints', fields: ['extensions'], der: added('2.5.29.30', true) },
  { lie: 'policies that are critical', fields: ['extensions'], der: added(oids.certificatePolicies, true) },
  { lie: 'another serial number than was chosen', fields: ['serial'], der: good, more: { serial: 'abc123' } },
  { lie: 'a serial number that was seen before', fields: ['serial'], der: good, more: { isOnRecord: true } },
  {
    lie: 'the chain of another CA',
    fields: ['chain'],
    chain: [signed({}, stranger.issuing), stranger.issuing.certificate.der, stranger.domainCa.certificate.der],
  },
  { lie: 'a chain with a gap', fields: ['chain'], chain: [good, outside.domainCa.certificate.der] },
  {
    lie: 'the name of our issuer with another key',
    fields: ['chain'],
    chain: [signed({}, fake), fake.certificate.der],
  },
  {
    lie: 'a signature of another key',
    fields: ['chain'],
    der: withField(good, stranger.issuing.key, field.serial, smallNumber(9)),
  },
  {
    lie: 'an issuer that is for servers',
    fields: ['chain'],
    chain: [signed({}, serversOnly), serversOnly.certificate.der, outside.domainCa.certificate.der],
  },
  {
    lie: 'an issuer that has been withdrawn',
    fields: ['chain'],
    der: good,
    more: { withdrawn: [keyId(outside.issuing.certificate.spki)] },
  },
]

/** Dated by the clock of an issuer that is so far ahead, or behind; it lives as long as was ordered, or longer. */
const datedBy = (aheadMs: number, longerMs = 0): Uint8Array =>
  signed({ issuedAtMs: nowMs + aheadMs, lifetimeMs: day + longerMs })
const apart = (aheadMs: number | null): Partial<ReturnedFacts> => ({ clock: { aheadMs, toleranceMs: 5 * minute } })
const fieldsOf = (verdict: ReturnedVerdict): readonly string[] =>
  verdict.kind === 'violates' ? verdict.violations.map((one) => one.field).toSorted() : []

describe('clocks that are apart are no lie', () => {
  for (const aheadMs of [30_000, minute, 4 * minute]) {
    test(`ahead by ${aheadMs / 1000} s, as the issuer says, or as the beginning of the certificate shows`, () => {
      assert.deepEqual(fieldsOf(judge(datedBy(aheadMs), apart(aheadMs))), [])
      // Backdated by a minute: what is less is not seen, and allows no more.
      assert.deepEqual(fieldsOf(judge(datedBy(aheadMs, -minute), apart(null))), [])
    })
  }

  test('behind by as much, also where it dates back besides', () => {
    assert.deepEqual(fieldsOf(judge(datedBy(-8 * minute), apart(-4 * minute))), [])
    assert.deepEqual(fieldsOf(judge(datedBy(-8 * minute), apart(null))), ['notBefore'])
    assert.deepEqual(fieldsOf(judge(datedBy(-11 * minute), apart(-60 * minute))), ['notBefore'], 'and no further')
  })

  test('a longer life is one whatever the clock says', () => {
    assert.deepEqual(fieldsOf(judge(datedBy(0, minute), apart(0))), ['notAfter'])
    assert.deepEqual(fieldsOf(judge(datedBy(4 * minute, minute), apart(4 * minute))), ['notAfter'])
    assert.deepEqual(fieldsOf(judge(datedBy(0, 6 * minute), apart(60 * minute))), ['notAfter'])
  })

  test('beyond the tolerance they are', () => {
    assert.deepEqual(fieldsOf(judge(datedBy(7 * minute), apart(7 * minute))), ['notAfter', 'notBefore'])
    assert.deepEqual(fieldsOf(judge(datedBy(2 * minute), { clock: { aheadMs: 0, toleranceMs: 0 } })), [
      'notAfter',
      'notBefore',
    ])
  })
})

describe('a lie is found in the field that lies', () => {
  for (const { lie, fields, more, ...returned } of lies) {
    test(lie, () => {
      const chain = 'chain' in returned ? returned.chain : [returned.der, ...above]
      const verdict = judgeReturned(facts({ chain, ...more }))
      assert.ok(verdict.kind === 'violates', 'it is refused')
      assert.deepEqual(verdict.violations.map((one) => one.field).toSorted(), fields)
      assert.ok(verdict.violations.every(({ why }) => why !== ''))
      if (fields[0] !== 'encoding') assert.match(verdict.serial ?? '', /^[0-9a-f]+$/, 'it can be revoked')
    })
  }
})

test('a name that forges lines is not repeated as it is', () => {
  const verdict = judge(named([attribute(oids.commonName, 'x\n{"level":60}', tags.utf8String)], [o], [ou]))
  assert.ok(verdict.kind === 'violates')
  assert.ok(verdict.violations.every(({ why }) => !why.includes('\n')))
})

test('a subject with the separators of a name in it is compared as what it is', () => {
  const wanted = nodeOrder(key, { subject: { cn: 'a, O=b + c', o: 'example.test', ou: 'nodes' } })
  const der = leaf(key, wanted, outside.issuing).certificate.der
  assert.equal(judge(der, { order: wanted }).kind, 'as-ordered')
  const forged = named([attribute(oids.commonName, 'a')], [attribute(oids.organization, 'b + c')], [o], [ou])
  assert.equal(judge(forged, { order: wanted }).kind, 'violates')
})
