// What is on record of every certificate we issued: its row is how a presented certificate is resolved (ruling 9).

import type { IssuerId, NodeId, Slot } from './node.ts'

export type CertificateRecord = {
  readonly issuer: IssuerId
  /** Hex, lower case, no leading zeros. */
  readonly serial: string
  readonly subject:
    { readonly kind: 'node'; readonly node: NodeId; readonly epoch: number } | { readonly kind: 'server' }
  readonly spki: string
  readonly sha256: string
  readonly issuedAtMs: number
  readonly notAfterMs: number
  /** The certificate itself, DER, base64: a repeated request gets these very bytes. */
  readonly der: string
  /** The order it answers. */
  readonly order: string
  /** The serial of the certificate that asked for this one, at a renewal. */
  readonly renews: string | null
}

/** A certificate as signed; the decision that ordered it adds the rest. */
export type IssuedCertificate = Omit<CertificateRecord, 'subject' | 'renews'>

export const certificateKey = (issuer: IssuerId, serial: string): string => `${issuer}/${serial}`

export const slotOf = (record: CertificateRecord): Slot => ({
  issuer: record.issuer,
  serial: record.serial,
  spki: record.spki,
  sha256: record.sha256,
  issuedAtMs: record.issuedAtMs,
  notAfterMs: record.notAfterMs,
})

/** What others are told of a revocation (RFC 5280, 5.3.1), as far as we know it. */
export type DenialReason = 'unspecified' | 'key-compromise' | 'ca-compromise' | 'superseded' | 'cessation-of-operation'

/**
 * An entry of the deny-list: one certificate, a whole epoch, or all that an authority has signed. It lives until nothing it
 * denies could still be valid.
 */
export type Denial = (
  | { readonly kind: 'epoch'; readonly node: NodeId; readonly epoch: number }
  | { readonly kind: 'certificate'; readonly issuer: IssuerId; readonly serial: string }
  | { readonly kind: 'issuer'; readonly issuer: IssuerId }
) & {
  /** Since when; 0: from before that was written down. */
  readonly atMs: number
  readonly untilMs: number
  readonly why: string
  readonly reason: DenialReason
}

export const denialKey = (denial: Denial): string => {
  switch (denial.kind) {
    case 'epoch':
      return epochDenialKey(denial.node, denial.epoch)
    case 'certificate':
      return certificateDenialKey(denial.issuer, denial.serial)
    case 'issuer':
      return issuerDenialKey(denial.issuer)
  }
}

export const epochDenialKey = (node: NodeId, epoch: number): string => `epoch/${epoch}/${node}`
export const certificateDenialKey = (issuer: IssuerId, serial: string): string => `certificate/${issuer}/${serial}`
export const issuerDenialKey = (issuer: IssuerId): string => `issuer/${issuer}`

/** A public key that may never be certified again. Bans never expire. */
export type KeyBan = { readonly spki: string; readonly why: string; readonly atMs: number }

/** What cuts off a certificate whose key is banned. */
export const deniedOverKey = (
  { issuer, serial, notAfterMs }: Pick<CertificateRecord, 'issuer' | 'serial' | 'notAfterMs'>,
  why: string,
  toleranceMs: number,
  atMs: number,
) =>
  ({
    put: 'denial',
    value: {
      kind: 'certificate',
      issuer,
      serial,
      atMs,
      untilMs: notAfterMs + toleranceMs,
      why,
      reason: 'key-compromise',
    },
  }) as const
