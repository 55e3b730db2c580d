// Whether a certificate that an outside issuer has returned is the one that was ordered. It is read in full: an issuer that is mistaken, or
// not ours any more, may have signed anything.

import type { SigningOrder } from '#domain/core/certificate.ts'
import { sameBytes } from '#platform/bytes.ts'
import { formatIp, parseIp } from '#platform/ip-address.ts'
import { isoTime } from '#platform/clock.ts'
import { isNamed } from './name.ts'
import { oids } from './oids.ts'
import { parseCertificate, type ParsedCertificate } from './parse-certificate.ts'
import { keyId } from './spki.ts'
import { type Purpose, verifyIssuedChain } from './verify-chain.ts'

export type ViolatedField =
  | 'encoding'
  | 'publicKey'
  | 'subject'
  | 'subjectAltName'
  | 'keyUsage'
  | 'extendedKeyUsage'
  | 'basicConstraints'
  | 'notBefore'
  | 'notAfter'
  | 'extensions'
  | 'serial'
  | 'chain'

export type Violation = { readonly field: ViolatedField; readonly why: string }

/** Clocks that are apart are no lie, as far as the domain tolerates it. */
export type IssuerClock = {
  /** By how much the clock of the issuer was ahead of ours at its answer, below 0 behind; null: it has not said. */
  readonly aheadMs: number | null
  readonly toleranceMs: number
}

export type ReturnedFacts = {
  readonly order: SigningOrder
  /** As returned: DER, the leaf first. The root may be the last. */
  readonly chain: readonly Uint8Array[]
  /** The roots on record for this issuer, DER. */
  readonly roots: readonly Uint8Array[]
  /** Key ids of authorities whose key may be compromised. */
  readonly withdrawn: readonly string[]
  /** The serial number that was chosen, hex; null: the issuer chooses it. */
  readonly serial: string | null
  /** A certificate with this serial number of this issuer is on record. */
  readonly isOnRecord: boolean
  readonly answeredAtMs: number
  readonly clock: IssuerClock
  /** Below it renewals would come faster than they can be served. */
  readonly leastLifetimeMs: number
}

export type ReturnedVerdict =
  | {
      readonly kind: 'as-ordered'
      readonly leaf: ParsedCertificate
      /** Its issuer first, the root last. */
      readonly above: readonly ParsedCertificate[]
      /** By how much the issuer has cut the lifetime; 0: by nothing that matters. */
      readonly shortByMs: number
    }
  /** `serial`: to be revoked there; null: it cannot be read. */
  | { readonly kind: 'violates'; readonly violations: readonly Violation[]; readonly serial: string | null }

/** Clocks of issuers and of machines are apart, and an issuer may date back. */
const mostBackdatingMs = 5 * 60_000
/** What an issuer that dates by its own clock is asked for is a little less than was ordered. */
const notWorthSayingMs = 2 * 60_000

/** The key id of its issuer, and its serial number: what is looked up before it is judged. Null: it cannot be read, or its issuer is unknown. */
export const returnedSerial = ({
  chain: [leaf, ...others],
  roots,
}: Pick<ReturnedFacts, 'chain' | 'roots'>): { readonly issuer: string; readonly serial: string } | null => {
  const certificate = leaf === undefined ? null : parseCertificate(leaf)
  if (certificate?.kind !== 'certificate' || certificate.authorityKeyId === null) return null
  for (const der of [...others, ...roots]) {
    const above = parseCertificate(der)
    if (above.kind === 'certificate' && above.subjectKeyId === certificate.authorityKeyId)
      return { issuer: keyId(above.spki), serial: certificate.serial }
  }
  return null
}

export const judgeReturned = (facts: ReturnedFacts): ReturnedVerdict => {
  const [first] = facts.chain
  const leaf = first === undefined ? null : parseCertificate(first)
  if (leaf === null || leaf.kind === 'malformed') {
    return { kind: 'violates', serial: null, violations: [{ field: 'encoding', why: leaf?.why ?? 'no certificate' }] }
  }
  const path = pathOf(facts, leaf)
  const violations = [
    ...nameViolations(facts.order, leaf),
    ...usageViolations(facts.order, leaf),
    ...timeViolations(facts, leaf),
    ...extensionViolations(leaf),
    ...serialViolations(facts, leaf),
    ...path.violations,
  ]
  if (violations.length > 0) return { kind: 'violates', violations, serial: leaf.serial }
  const missingMs = facts.order.issuedAtMs + facts.order.lifetimeMs - leaf.notAfterMs
  return { kind: 'as-ordered', leaf, above: path.above, shortByMs: missingMs > notWorthSayingMs ? missingMs : 0 }
}

const violation = (is: boolean, field: ViolatedField, why: () => string): Violation[] =>
  is ? [{ field, why: why() }] : []

const nameViolations = (order: SigningOrder, leaf: ParsedCertificate): Violation[] => {
  const { cn, o, ou } = order.subject
  const wanted = { cn: cn === '' ? null : cn, o: o === '' ? null : o, ou: ou === '' ? null : ou }
  const sans = differentSans(order, leaf)
  return [
    ...violation(!sameBytes(leaf.spki, order.publicKey), 'publicKey', () => 'it is for another key'),
    ...violation(!isNamed(leaf.subject, wanted), 'subject', () => `it is of ${shown(leaf.subject)}`),
    ...violation(sans !== null, 'subjectAltName', () => sans ?? ''),
  ]
}

const differentSans = (order: SigningOrder, leaf: ParsedCertificate): string | null => {
  if (leaf.otherNames > 0) return 'it has a name of a kind that is never ordered'
  const there = [...leaf.uris, ...leaf.dnsNames, ...leaf.ips.map((ip) => `IP ${ip}`)]
  const ordered = [...order.uriSans, ...order.dnsSans, ...order.ipSans.map((ip) => `IP ${inOneForm(ip)}`)]
  const extra = there.find((name) => !ordered.includes(name))
  if (extra !== undefined) return `it has ${shown(extra)}, which was not ordered`
  const missing = ordered.find((name) => !there.includes(name))
  if (missing !== undefined) return `it lacks ${missing}`
  return there.length === ordered.length ? null : 'it has a name twice'
}

const inOneForm = (ip: string): string => {
  const bytes = parseIp(ip)
  return bytes === null ? ip : formatIp(bytes)
}

const usageViolations = (order: SigningOrder, leaf: ParsedCertificate): Violation[] => {
  const wanted = order.usage === 'both' ? ['clientAuth', 'serverAuth'] : [`${order.usage}Auth`]
  const purposes = leaf.extendedKeyUsage.toSorted()
  return [
    ...violation(leaf.ca, 'basicConstraints', () => 'it is a CA'),
    ...violation(leaf.keyUsage.join() !== 'digitalSignature', 'keyUsage', () => said(leaf.keyUsage)),
    ...violation(purposes.join() !== wanted.join(), 'extendedKeyUsage', () => said(purposes)),
  ]
}

const said = (usages: readonly string[]): string =>
  usages.length === 0 ? 'it does not say' : `it is for ${usages.join(', ')}`

/**
 * How far the clock of the issuer is seen to be ahead: it says so, or its certificate begins in our future. What begins later may end as much
 * later, and lives no longer than was ordered.
 */
const seenAheadMs = ({ answeredAtMs, clock }: ReturnedFacts, { notBeforeMs }: ParsedCertificate): number =>
  Math.min(clock.toleranceMs, Math.max(0, clock.aheadMs ?? 0, notBeforeMs - answeredAtMs))

const timeViolations = (facts: ReturnedFacts, leaf: ParsedCertificate): Violation[] => {
  const { order, answeredAtMs, leastLifetimeMs, clock } = facts
  const { notBeforeMs, notAfterMs } = leaf
  const behindMs = Math.min(clock.toleranceMs, Math.max(0, -(clock.aheadMs ?? 0)))
  const early = notBeforeMs < order.issuedAtMs - mostBackdatingMs - behindMs
  const late = notBeforeMs > answeredAtMs + clock.toleranceMs
  // The issuer counts from when it signs, which is not later than its answer.
  const long = notAfterMs > answeredAtMs + seenAheadMs(facts, leaf) + order.lifetimeMs
  const short = notAfterMs < answeredAtMs + leastLifetimeMs
  return [
    ...violation(
      early || late,
      'notBefore',
      () => `it begins ${isoTime(notBeforeMs)}, ${early ? 'too long ago' : 'in the future'}`,
    ),
    ...violation(long, 'notAfter', () => `it ends ${isoTime(notAfterMs)}, later than was ordered`),
    ...violation(short, 'notAfter', () => `it ends ${isoTime(notAfterMs)}, earlier than the profile can do with`),
  ]
}

/** Of these, the readers of this package know the first eight; the others change nothing about what a certificate allows. */
const expected: ReadonlySet<string> = new Set([
  oids.basicConstraints,
  oids.keyUsage,
  oids.extendedKeyUsage,
  oids.subjectAltName,
  oids.subjectKeyId,
  oids.authorityKeyId,
  oids.authorityInfoAccess,
  oids.crlDistributionPoints,
  oids.certificatePolicies,
  oids.stepProvisioner,
])

const extensionViolations = (leaf: ParsedCertificate): Violation[] => {
  const [critical] = leaf.unknownCritical
  const other = leaf.extensionIds.find((id) => !expected.has(id))
  return [
    ...violation(critical !== undefined, 'extensions', () => `it has the critical extension ${critical ?? ''}`),
    ...violation(
      critical === undefined && other !== undefined,
      'extensions',
      () => `it has the extension ${other ?? ''}`,
    ),
  ]
}

const serialViolations = ({ serial, isOnRecord }: ReturnedFacts, leaf: ParsedCertificate): Violation[] => [
  ...violation(serial !== null && leaf.serial !== serial, 'serial', () => `it is ${leaf.serial}, not ${serial ?? ''}`),
  ...violation(isOnRecord, 'serial', () => `${leaf.serial} is that of another certificate of this issuer`),
]

type PathFound = { readonly above: readonly ParsedCertificate[]; readonly violations: readonly Violation[] }

const pathOf = (facts: ReturnedFacts, leaf: ParsedCertificate): PathFound => {
  const { chain, roots, order, withdrawn, answeredAtMs } = facts
  const atMs = answeredAtMs + seenAheadMs(facts, leaf)
  const purposes: readonly Purpose[] = order.usage === 'both' ? ['clientAuth', 'serverAuth'] : [`${order.usage}Auth`]
  const verified = verifyIssuedChain({ chain, roots, purposes, nowMs: atMs })
  if (verified.kind === 'untrusted') {
    // The times of the leaf itself are said under their own names.
    const isLeaf =
      (verified.code === 'expired' || verified.code === 'not-yet-valid') &&
      (leaf.notAfterMs <= atMs || leaf.notBeforeMs > atMs)
    const isCritical = verified.code === 'critical-extension' && leaf.unknownCritical.length > 0
    return { above: [], violations: violation(!isLeaf && !isCritical, 'chain', () => verified.why) }
  }
  const above = verified.path.slice(1)
  const hit = above.find(({ spki }) => withdrawn.includes(keyId(spki)))
  return { above, violations: violation(hit !== undefined, 'chain', () => `${hit?.subject ?? ''} has been withdrawn`) }
}

/** Names come from outside and go into the journal. */
const shown = (text: string): string => text.slice(0, 128)
