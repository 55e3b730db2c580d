// What the plane hands out is checked before it replaces anything: a certificate for another key would lock us out.

import type { AgentProfile, EndpointSet } from '#wire/node-api.ts'
import { sameBytes } from '#platform/bytes.ts'
import { backdatingMs } from '#pki/authority-certificates.ts'
import { fingerprint } from '#pki/fingerprint.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem } from '#pki/pem.ts'
import type { Generation, KeyRequest } from './credentials.ts'

export type Unusable = { readonly kind: 'unusable'; readonly why: string }

const unusable = (why: string): Unusable => ({ kind: 'unusable', why })

const longestChain = 6
const mostRoots = 32
const mostEndpoints = 32

export const generationFrom = (
  request: KeyRequest,
  chainPem: string,
): { kind: 'generation'; generation: Generation } | Unusable => {
  const chain = allFromPem('CERTIFICATE', chainPem)
  const leafDer = chain?.[0]
  if (chain === null || leafDer === undefined || chain.length > longestChain) return unusable('no certificate chain')
  const leaf = parseCertificate(leafDer)
  if (leaf.kind === 'malformed') return unusable(`the certificate is malformed (${leaf.why})`)
  if (leaf.notBeforeMs < 0 || leaf.notAfterMs <= leaf.notBeforeMs) return unusable('the certificate is never valid')
  if (!sameBytes(leaf.spki, loadPrivateKey(request.keyPem).spki)) return unusable('the certificate is for another key')
  return {
    kind: 'generation',
    generation: {
      keyPem: request.keyPem,
      chainPem,
      serial: leaf.serial,
      proven: false,
      issuedAtMs: Math.min(leaf.notBeforeMs + backdatingMs, leaf.notAfterMs),
      notAfterMs: leaf.notAfterMs,
    },
  }
}

/** Null when the roots can be trusted as they are, else what is wrong with them. */
export const faultOfRoots = (roots: readonly string[]): string | null => {
  if (roots.length === 0 || roots.length > mostRoots) return 'no roots, or too many'
  const good = roots.every((pem) => {
    const der = fromPem('CERTIFICATE', pem)
    return der !== null && parseCertificate(der).kind === 'certificate'
  })
  return good ? null : 'a root is malformed'
}

/**
 * Roots are exchanged one after the other: a set that has none of those in use cannot have verified the very connection
 * it came over, and would lock this machine out.
 */
export const faultOfNewRoots = (inUse: readonly string[], next: readonly string[]): string | null => {
  const known = new Set(inUse.map(fingerprintOf))
  return faultOfRoots(next) ?? (next.some((pem) => known.has(fingerprintOf(pem))) ? null : 'none of the roots in use')
}

const fingerprintOf = (pem: string): string => {
  const der = fromPem('CERTIFICATE', pem)
  return der === null ? pem : fingerprint(der)
}

const longestProfileName = 256

export const faultOfProfile = (profile: AgentProfile): string | null =>
  profile.name.length <= longestProfileName &&
  profile.lifetime_ms > 0 &&
  profile.renew_from > 0 &&
  profile.renew_from <= profile.renew_to &&
  profile.renew_to < 1
    ? null
    : 'a profile that would not renew in time, or with too long a name'

export const faultOfEndpoints = (endpoints: EndpointSet): string | null => {
  const all = [...endpoints.runtime, ...endpoints.stream]
  if (endpoints.runtime.length === 0 || endpoints.stream.length === 0) return 'no endpoints'
  if (all.length > mostEndpoints) return 'too many endpoints'
  const secure = (url: string): boolean => URL.canParse(url) && ['https:', 'wss:'].includes(new URL(url).protocol)
  return all.every((url) => url.length <= 512 && secure(url)) ? null : 'an endpoint that is not https or wss'
}
