// What the plane asks a step-ca for renewals with: a key, and a certificate under a root that is made for this one issuer.

import { renewalCredentialSpec, renewalRootLifetimeMs, renewalRootSpec } from '#pki/authority-certificates.ts'
import { buildCertificate, type CertificateSpec } from '#pki/certificate.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import type { Random } from '#platform/random.ts'

export type RenewalCredential = { readonly key: PrivateKey; readonly certificate: ParsedCertificate }

export type CredentialRequest = { readonly domain: string; readonly nowMs: number; readonly random: Random }

const year = 365 * 86_400_000
/** Five of them in the life of its root, and much longer than any leaf: step-ca signs nothing that would outlive it. */
const credentialLifetimeMs = 5 * year

/** The root goes into the configuration of the step-ca, and its key signs credentials and nothing else. */
export const makeRenewalRoot = ({ domain, nowMs, random }: CredentialRequest): RenewalCredential => {
  const key = generateKey('p256')
  const request = { domain, spki: key.spki, serial: random.bytes(16), nowMs, lifetimeMs: renewalRootLifetimeMs }
  return made(renewalRootSpec(request), key, key)
}

/** For a key of its own each time. */
export const makeRenewalCredential = (
  root: RenewalCredential,
  { domain, nowMs, random }: CredentialRequest,
): RenewalCredential => {
  const key = generateKey('p256')
  const request = { domain, spki: key.spki, serial: random.bytes(16), nowMs, lifetimeMs: credentialLifetimeMs }
  return made(renewalCredentialSpec(request, root.certificate), key, root.key)
}

const made = (spec: CertificateSpec, key: PrivateKey, signedBy: PrivateKey): RenewalCredential => {
  const certificate = parseCertificate(buildCertificate(spec, signedBy))
  if (certificate.kind === 'malformed')
    throw new Error(`a credential of our own making is malformed: ${certificate.why}`)
  return { key, certificate }
}

/** A year before its end, and while the longest leaf still fits twice, so that a step that fails for a while costs nobody a renewal. */
export const isCredentialDue = (
  { notAfterMs }: Pick<ParsedCertificate, 'notAfterMs'>,
  longestLeafMs: number,
  nowMs: number,
): boolean => notAfterMs - nowMs < Math.max(year, 2 * longestLeafMs)
