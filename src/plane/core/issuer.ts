// The interface of an issuer: built in now, step-ca and Vault later.

import type { IssuedCertificate, SigningOrder } from '#domain/core/certificate.ts'
import type { Read } from '#domain/core/change.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { IssuerRoots } from '#wire/identity/identity-api.ts'

export type Issuer = {
  /**
   * Safe to repeat with the same order. The answer has been checked against the order: same key, names, usage, and not
   * outliving its issuer.
   */
  sign(order: SigningOrder): Promise<IssuedCertificate>
  /** The certificates between a leaf of this issuer and the root, leaf's issuer first, without the root; DER. */
  chainOf(issuer: IssuerId): readonly Uint8Array[]
  /** PEM of the root above a leaf of this issuer: for those who verify the leaf, not the plane. */
  rootOf(issuer: IssuerId): string
  /** PEM of the roots nodes verify the plane by, newest first. */
  roots(): readonly string[]
  /** What certificates of nodes hang under besides, for those who verify nodes; nobody verifies a plane by them. */
  issuerRoots(): IssuerRoots
  /** Authorities whose key may be compromised and that could still be valid, the latest first. */
  withdrawnIssuers(): readonly IssuerId[]
  /**
   * The row of an authority as this plane knows it: goes among what the commit relies on that hands out what it has
   * signed, so that one withdrawn meanwhile hands out nothing.
   */
  rowRead(issuer: IssuerId): Read
  /** What others have done to the authorities is known when it resolves. */
  lookAgain(): Promise<void>
  /** SHA-256 of the newest root certificate, lower-case hex. */
  rootFingerprint(): string
  /** The longest lifetime a leaf signed now could have. */
  longestLeafMs(): number
}
