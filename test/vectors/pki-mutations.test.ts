// Good requests, certificates and chains, damaged at random. `npm run test:long` damages many more.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planeMark } from '#domain/core/plane-mark.ts'
import { parseCsr, parseCsrDer } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { isSignedBy, issuerAndSerial, parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { verifyServerChain } from '#pki/verify-chain.ts'
import { type Random } from '#platform/random.ts'
import { seededRandom } from '../fakes/seeded-random.ts'
import { hierarchy, host, leaf, nodeOrder, nowMs, serverOrder } from './pki-hierarchy.ts'
import { goodCsr } from './pki-hostile-csrs.ts'

const rounds = process.env['MUSTER_LONG'] === '1' ? 200_000 : 3000
const chains = Math.floor(rounds / 3)

const below = (random: Random, limit: number): number => Math.floor(random.unit() * limit)

const boundaryBytes = [
  0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x30, 0x31, 0x7f, 0x80, 0x81, 0x82, 0x84, 0xa0, 0xa3, 0xff,
]

type Damage = (der: Buffer, at: number, random: Random) => Uint8Array

const damages: readonly Damage[] = [
  (der, at, random) => der.fill((der[at] ?? 0) ^ (1 << below(random, 8)), at, at + 1),
  (der, at, random) => der.fill(boundaryBytes[below(random, boundaryBytes.length)] ?? 0, at, at + 1),
  (der, at, random) => der.fill(((der[at] ?? 0) + (random.unit() < 0.5 ? 1 : 255)) & 0xff, at, at + 1),
  (der, at, random) => Buffer.concat([der.subarray(0, at), der.subarray(at + 1 + below(random, 8))]),
  (der, at, random) => Buffer.concat([der.subarray(0, at), random.bytes(1 + below(random, 4)), der.subarray(at)]),
  (der, at, random) => Buffer.concat([der.subarray(0, at + below(random, 40)), der.subarray(at)]),
  (der, at) => der.subarray(0, at),
  (der, at, random) => der.copyWithin(at, below(random, der.length), der.length),
]

const damaged = (good: Uint8Array, random: Random): Uint8Array => {
  let der: Uint8Array = Buffer.from(good)
  for (let left = 1 + below(random, 3); left > 0 && der.length > 0; left--) {
    const damage = damages[below(random, damages.length)]
    if (damage !== undefined) der = damage(Buffer.from(der), below(random, der.length), random)
  }
  return der
}

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0

/** How much more a damaged input costs on average than a good one. Both are measured here and now, so it is a ratio. */
const costRatio = (good: () => unknown, bad: readonly (() => unknown)[]): number => {
  const cpuMs = (run: () => void): number => {
    const from = process.cpuUsage()
    run()
    const spent = process.cpuUsage(from)
    return (spent.user + spent.system) / 1000
  }
  const goodMs = cpuMs(() => bad.forEach(good))
  return cpuMs(() => bad.forEach((run) => run())) / goodMs
}

const inBatches = (total: number, run: (count: number) => void): void => {
  for (let left = total; left > 0; left -= 1000) run(Math.min(left, 1000))
}

test(`no damaged request is accepted, in ${rounds} tries`, () => {
  const random = seededRandom(1)
  for (const type of ['p256', 'ed25519'] as const) {
    const pem = goodCsr(generateKey(type))
    const good = fromPem('CERTIFICATE REQUEST', pem)
    assert.ok(good !== null)
    assert.equal(parseCsrDer(good).kind, 'csr')
    inBatches(rounds / 2, (count) => {
      const inputs = Array.from({ length: count }, () => damaged(good, random))
      const refuse = (der: Uint8Array) => () => {
        if (!same(der, good)) assert.equal(parseCsrDer(der).kind, 'malformed', Buffer.from(der).toString('hex'))
      }
      const ratio = costRatio(() => parseCsrDer(good), inputs.map(refuse))
      assert.ok(ratio < 3, `a damaged request costs ${ratio.toFixed(2)} times a good one`)
    })
  }
})

test('a request whose text was damaged gives the key it was signed with or nothing', () => {
  const random = seededRandom(2)
  const pem = goodCsr(generateKey('p256'))
  const good = parseCsr(pem)
  assert.ok(good.kind === 'csr')
  for (let round = 0; round < rounds / 10; round++) {
    const answer = parseCsr(Buffer.from(damaged(Buffer.from(pem), random)).toString('latin1'))
    // Line ends may differ, and the key is still the one that signed.
    if (answer.kind === 'csr') assert.ok(same(answer.spki, good.spki))
  }
})

test(`no damaged certificate passes for one its issuer signed, in ${rounds} tries`, () => {
  const random = seededRandom(3)
  const { issuing } = hierarchy('p256', nowMs)
  const key = generateKey('ed25519')
  const good = leaf(key, nodeOrder(key, {}), issuing).certificate.der
  inBatches(rounds, (count) => {
    const inputs = Array.from({ length: count }, () => damaged(good, random))
    const check = (der: Uint8Array) => (): void => {
      issuerAndSerial(der)
      const parsed = parseCertificate(der)
      if (parsed.kind === 'malformed' || same(der, good)) return
      assert.equal(isSignedBy(parsed, issuing.certificate), false, Buffer.from(der).toString('hex'))
    }
    const ratio = costRatio(() => {
      const parsed = parseCertificate(good)
      return parsed.kind === 'certificate' && isSignedBy(parsed, issuing.certificate)
    }, inputs.map(check))
    assert.ok(ratio < 3, `a damaged certificate costs ${ratio.toFixed(2)} times a good one`)
  })
})

test(`no chain with a damaged certificate is trusted, in ${chains} tries`, () => {
  const random = seededRandom(4)
  const { root, domainCa, issuing } = hierarchy('p256', nowMs)
  const key = generateKey('p256')
  const held = [leaf(key, serverOrder(key, {}), issuing), issuing, domainCa, root]
  const chain = held.map((one) => one.certificate.der)
  const anchor = { rootFingerprint: root.certificate.sha256 }
  const mark = { uri: planeMark('example.test'), required: false }
  const verdict = (of: readonly Uint8Array[]): string =>
    verifyServerChain({ chain: of, mark, anchor, host, nowMs }).kind
  assert.equal(verdict(chain), 'trusted')
  inBatches(chains, (count) => {
    const inputs = Array.from({ length: count }, () => {
      const place = below(random, chain.length)
      return chain.with(place, damaged(chain[place] ?? new Uint8Array(), random))
    })
    const check = (of: readonly Uint8Array[]) => (): void => {
      if (of.some((der, place) => !same(der, chain[place] ?? der))) assert.equal(verdict(of), 'untrusted')
    }
    const ratio = costRatio(() => verdict(chain), inputs.map(check))
    assert.ok(ratio < 3, `a damaged chain costs ${ratio.toFixed(2)} times a good one`)
  })
})
