// The plane's own certificate: whether a new one is due, what is ordered, and what is written once it is signed.

import { isoTime } from '#platform/clock.ts'
import { planeMark } from '#domain/core/plane-mark.ts'
import {
  certificateKey,
  type CertificateRow,
  type IssuedCertificate,
  placeOrder,
  type SigningOrder,
} from '#domain/core/certificate.ts'
import { readOf, type Change, entry, type Attribution } from '#domain/core/change.ts'

/** What clients call the plane by: host names in lower case, addresses in their canonical text. */
export type ServerNames = { readonly dns: readonly string[]; readonly ip: readonly string[] }

/** The certificate the plane presents, as far as its renewal goes. */
export type PresentedServerCertificate = {
  readonly serial: string
  /** Some time before it was issued (ruling 9). */
  readonly notBeforeMs: number
  readonly issuedAtMs: number
  readonly notAfterMs: number
  readonly names: ServerNames
  /** It carries the plane's mark, which those before 0.4.0 do not. */
  readonly marked: boolean
}

export type ServerCertificateFacts = {
  readonly current: PresentedServerCertificate | null
  readonly wanted: ServerNames
  /** When the issuing CA ends that would sign now. */
  readonly issuerNotAfterMs: number
  readonly nowMs: number
}

/** An issuer that is replaced in the course of things gives no cause; one replaced by an operator does. */
export type WhyIssued = 'first one' | 'names changed' | 'no mark' | 'clock set back' | 'half life' | 'issuer replaced'

/** Null: the current one goes on. */
export const whyServerCertificateDue = (facts: ServerCertificateFacts): WhyIssued | null => {
  const { current, wanted, nowMs } = facts
  if (current === null) return 'first one'
  if (!sameNames(current.names, wanted)) return 'names changed'
  if (!current.marked) return 'no mark'
  if (nowMs < current.notBeforeMs) return 'clock set back'
  // One that ends with its issuer would end then again, however often it was renewed.
  if (current.notAfterMs >= facts.issuerNotAfterMs) return null
  return nowMs >= (current.issuedAtMs + current.notAfterMs) / 2 ? 'half life' : null
}

export type ServerOrderFacts = {
  readonly id: string
  readonly domain: string
  readonly names: ServerNames
  readonly publicKey: Uint8Array
  readonly lifetimeMs: number
  readonly nowMs: number
}

/** X.520's upper bound for a common name; clients look at the alternative names. */
const longestName = 64

export const orderServerCertificate = (facts: ServerOrderFacts): SigningOrder => {
  const { names } = facts
  const cn = [...names.dns, ...names.ip].find((name) => name.length <= longestName) ?? 'muster'
  return placeOrder({
    id: facts.id,
    subject: { cn, o: facts.domain.slice(0, longestName), ou: 'control-plane' },
    uriSans: [planeMark(facts.domain)],
    dnsSans: names.dns,
    ipSans: names.ip,
    usage: 'server',
    publicKey: facts.publicKey,
    issuedAtMs: facts.nowMs,
    lifetimeMs: facts.lifetimeMs,
    aiaUrl: null,
    cdpUrl: null,
    for: { kind: 'server' },
  })
}

export const serverCertificateIssued = (
  issued: IssuedCertificate,
  story: {
    readonly why: WhyIssued
    /** Whom it is presented to. */
    readonly purpose: 'runtime' | 'recovery'
    readonly names: ServerNames
    readonly renews: string | null
  },
  by: Attribution,
): Change => {
  const row: CertificateRow = { ...issued, subject: { kind: 'server' }, renews: story.renews }
  return {
    reads: [readOf('certificate', certificateKey(row.issuer, row.serial), null)],
    writes: [{ put: 'certificate', value: row }],
    entries: [
      entry(
        by,
        issued.issuedAtMs,
        'server_certificate.issued',
        { issuer: row.issuer, serial: row.serial },
        {
          why: story.why,
          purpose: story.purpose,
          names: [...story.names.dns, ...story.names.ip],
          renews: story.renews,
          fingerprint: `SHA256:${row.sha256}`,
          order: row.order,
          not_after: isoTime(row.notAfterMs),
        },
      ),
    ],
  }
}

const sameNames = (a: ServerNames, b: ServerNames): boolean => sameSet(a.dns, b.dns) && sameSet(a.ip, b.ip)

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  new Set(a).size === new Set(b).size && a.every((one) => b.includes(one))
