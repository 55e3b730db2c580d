// An outside issuer in this process, for lies, delays and crashes: real keys and real certificates, and no server. It goes on while planes
// come and go.

import { webcrypto } from 'node:crypto'
import { placeOrder, type OrderDraft } from '#domain/core/certificate.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { Read, Write } from '#domain/core/change.ts'
import { refuse } from '#domain/core/refusal.ts'
import type { Outcome } from '#domain/issuers/issuer-breaker.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { issuingSpec, leafSpec, rootSpec } from '#pki/authority-certificates.ts'
import { buildCertificate, serialHex, type CertificateSpec } from '#pki/certificate.ts'
import { bits, encode, raw, sequence } from '#pki/der-writer.ts'
import { generateKey, keyHash, keyId, spkiHash, type PrivateKey } from '#pki/keys.ts'
import { algorithmIdentifier, algorithmOf } from '#pki/signature.ts'
import type { IssuerDoor } from '#plane/issuers/outside-orders.ts'
import type { Attempt, OutsideSigner, Returned, Unsent, Unsigned } from '#plane/issuers/outside-signer.ts'
import { authority, parsed, type Held } from '../vectors/pki-hierarchy.ts'
import { outsideIssuer } from './issuer-rows.ts'

export type Signature = { readonly serial: string; readonly spki: string; readonly chain: readonly Uint8Array[] }

export type Answer = Returned | Unsent | Unsigned

export type FakeIssuer = {
  readonly issuer: OutsideIssuer
  readonly root: Held
  readonly issuing: Held
  /** What an operator who adds it writes. */
  readonly writes: readonly Write[]
  readonly reads: readonly Read[]
  readonly door: IssuerDoor
  readonly asked: Attempt[]
  /** All that it has ever signed. */
  readonly signed: Signature[]
  readonly revoked: Set<string>
  readonly left: Outcome[]
  /** What it says of its clock. */
  aheadMs: number | null
  /** How it answers; the usual answer until a test says otherwise. */
  answer: (attempt: Attempt, signal: AbortSignal) => Promise<Answer>
  /** What it does when nothing is wrong. `lie`: changes what was ordered, or what is signed. */
  sign(attempt: Attempt, lie?: Lie): Returned
  /** Says what it signed for a key; null: it cannot be searched. */
  canBeSearched: boolean
  /** Runs before it says so. */
  look: (known: (serial: string) => Promise<boolean>) => Promise<void>
}

export type Lie = {
  readonly order?: Partial<OrderDraft>
  readonly spec?: (spec: CertificateSpec) => CertificateSpec
  readonly serial?: Uint8Array
  /** Who signs. */
  readonly by?: Held
}

/** `takesSerial`: as step-ca does; else it chooses them, as Vault does. */
export const fakeIssuer = (nowMs: number, { takesSerial = true, name = 'corp' } = {}): FakeIssuer => {
  const rootKey = generateKey('p256')
  const root = withOtherKeyId(
    buildCertificate(rootSpec({ ...authority(rootKey, 10 * yearMs, nowMs), pathLen: 2 }), rootKey),
    rootKey,
    rootKey,
  )
  const issuing = issuingBelow(root, nowMs)
  const issuer = outsideIssuer({
    id: `id-of-${name}`,
    name,
    roots: [keyId(root.key.spki)],
    abilities: {
      ...{ testedAtMs: nowMs, takesSerial, revokes: true, lists: !takesSerial, longestMs: 365 * 86_400_000 },
    },
  })
  const rows: readonly IssuerRow[] = [authorityRow(root, root), authorityRow(issuing, root)]
  const fake: FakeIssuer = {
    ...{
      issuer,
      root,
      issuing,
      asked: [],
      signed: [],
      revoked: new Set(),
      left: [],
      canBeSearched: true,
      aheadMs: null,
    },
    look: async () => {},
    writes: [{ put: 'outside-issuer', value: issuer }, ...rows.map((value): Write => ({ put: 'issuer', value }))],
    reads: [
      { row: 'outside-issuer', key: name, version: 0 },
      ...rows.map(({ id }): Read => ({ row: 'issuer', key: id, version: 0 })),
    ],
    door: {
      enter: async (asked) =>
        asked === name
          ? { kind: 'entered', issuer, signer, leave: leaveOnce(fakeLeft) }
          : refuse('ISSUER_UNAVAILABLE', `there is no issuer ${asked}`),
      signerOf: async (id) => (id === issuer.id ? signer : null),
    },
    answer: async (attempt) => fake.sign(attempt),
    sign(attempt, lie = {}) {
      const serial = lie.serial ?? bytesOf(attempt.serial)
      const by = lie.by ?? issuing
      const order = placeOrder({ ...attempt.order, ...lie.order })
      const spec = leafSpec(order, by.certificate, serial)
      const leaf = buildCertificate(lie.spec?.(spec) ?? spec, by.key)
      const chain = [leaf, by.certificate.der]
      fake.signed.push({ serial: serialHex(serial), spki: spkiHash(order.publicKey), chain })
      return { kind: 'returned', chain }
    },
  }
  const fakeLeft = (outcome: Outcome): void => void fake.left.push(outcome)
  const signer: OutsideSigner = {
    abilities: { takesSerial, revokes: true, lists: !takesSerial },
    get aheadMs() {
      return fake.aheadMs
    },
    async sign(attempt, signal) {
      fake.asked.push(attempt)
      return fake.answer(attempt, signal)
    },
    async revoke(serial) {
      fake.revoked.add(serial)
      return fake.signed.some((one) => one.serial === serial) ? 'revoked' : 'unknown there'
    },
    async find(spki, known) {
      await fake.look(known)
      if (!fake.canBeSearched) return null
      for (const one of fake.signed) if (one.spki === spki && !(await known(one.serial))) return one.serial
      return null
    },
    test: async () => [],
  }
  return fake
}

export const issuingBelow = (parent: Held, nowMs: number): Held => {
  const key = generateKey('p256')
  const made = buildCertificate(issuingSpec(authority(key, 5 * yearMs, nowMs), parent.certificate), parent.key)
  return withOtherKeyId(made, key, parent.key)
}

const yearMs = 365 * 86_400_000

const leaveOnce = (leave: (outcome: Outcome) => void): ((outcome: Outcome) => void) => {
  let left = false
  return (outcome) => {
    if (!left) leave(outcome)
    left = true
  }
}

/** The first digit is not 0, as everywhere. */
const bytesOf = (serial: string | null): Uint8Array => {
  if (serial !== null) return Buffer.from(serial.padStart(serial.length + (serial.length % 2), '0'), 'hex')
  const bytes = webcrypto.getRandomValues(new Uint8Array(16))
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x10
  return bytes
}

/** As other software makes it: SHA-1 of the key, where ours is of SHA-256. So it is not the id that the authority has here. */
const withOtherKeyId = (der: Uint8Array, key: PrivateKey, signer: PrivateKey): Held => {
  const { tbs } = parsed(der)
  const ours = Buffer.from(keyId(key.spki), 'hex')
  const theirs = Buffer.from(keyHash(key.spki, 'sha1').slice(0, 40), 'hex')
  const changed = Buffer.from(tbs)
  for (let at = changed.indexOf(ours); at !== -1; at = changed.indexOf(ours)) theirs.copy(changed, at)
  const algorithm = raw(algorithmIdentifier[algorithmOf[signer.type]])
  return { key, certificate: parsed(encode(sequence(raw(changed), algorithm, bits(signer.sign(changed))))) }
}

export const authorityRow = ({ key, certificate }: Held, above: Held): IssuerRow => ({
  id: keyId(key.spki),
  role: above.key === key ? 'outside-root' : 'outside-issuing',
  der: Buffer.from(certificate.der).toString('base64'),
  parent: keyId(above.key.spki),
  custody: 'offline',
  notBeforeMs: certificate.notBeforeMs,
  notAfterMs: certificate.notAfterMs,
  retiredAtMs: null,
  compromisedAtMs: null,
})
