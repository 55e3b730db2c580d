// What the plane hands out is checked before it replaces anything: a certificate for another key would lock us out.

import { bearerShape } from '#wire/recovery/recovery-api.ts'
import { parseStatement } from '#wire/core/statement.ts'
import {
  longestIssuerRoots,
  mostIssuerRoots,
  type AgentProfile,
  type EndpointSet,
  type IssuerRoots,
  type RecoveryTrust,
} from '#wire/identity/identity-api.ts'
import type { EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import { sameBytes } from '#platform/bytes.ts'
import { backdatingMs } from '#pki/authority-certificates.ts'
import { fingerprint } from '#pki/certificate.ts'
import { keyTypeOfSpki, loadPrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem } from '#pki/pem.ts'
import type { AgentRecovery, Generation, Identity, KeyRequest } from './credentials.ts'
import { rootOfChain } from './trust.ts'

export type Unusable = { readonly kind: 'unusable'; readonly why: string }

const unusable = (why: string): Unusable => ({ kind: 'unusable', why })

const longestChain = 6
const mostRoots = 32
const mostEndpoints = 32

/** Planes before 0.4 name no root for the certificate. */
export type CertificateFields = Pick<EnrollResponse, 'certificate_chain' | 'certificate_root' | 'roots'>

export const generationFrom = (
  request: KeyRequest,
  { certificate_chain: chainPem, certificate_root: named, roots }: CertificateFields,
): { kind: 'generation'; generation: Generation } | Unusable => {
  const chain = allFromPem('CERTIFICATE', chainPem)
  const leafDer = chain?.[0]
  if (chain === null || leafDer === undefined || chain.length > longestChain) return unusable('no certificate chain')
  const leaf = parseCertificate(leafDer)
  if (leaf.kind === 'malformed') return unusable(`the certificate is malformed (${leaf.why})`)
  if (leaf.notBeforeMs < 0 || leaf.notAfterMs <= leaf.notBeforeMs) return unusable('the certificate is never valid')
  if (!sameBytes(leaf.spki, loadPrivateKey(request.keyPem).spki)) return unusable('the certificate is for another key')
  const rootPem = rootOfChain(chainPem, named === undefined ? roots : [named])
  if (named !== undefined && rootPem === null) return unusable('the certificate is not under the root that is named')
  return {
    kind: 'generation',
    generation: {
      keyPem: request.keyPem,
      chainPem,
      rootPem,
      serial: leaf.serial,
      proven: false,
      issuedAtMs: Math.min(leaf.notBeforeMs + backdatingMs, leaf.notAfterMs),
      notAfterMs: leaf.notAfterMs,
    },
  }
}

/** Null when the set can be kept as it is. Only the empty one has revision 0. */
export const faultOfIssuerRoots = ({ revision, roots }: IssuerRoots): string | null => {
  if ((revision === 0) !== (roots.length === 0)) return 'a revision that is not of these roots'
  if (roots.length > mostIssuerRoots) return 'too many roots'
  if (roots.reduce((sum, { length }) => sum + length, 0) > longestIssuerRoots) return 'roots that are too long'
  return roots.length === 0 ? null : faultOfRoots(roots)
}

/** A set that cannot be kept costs nobody the certificate that it came with: the agent stays with the one it has, and says so. */
export const issuerRootsFrom = (given: IssuerRoots | undefined, kept: IssuerRoots): IssuerRoots =>
  given === undefined || faultOfIssuerRoots(given) !== null ? kept : { revision: given.revision, roots: given.roots }

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
  const all = [...endpoints.runtime, ...endpoints.stream, ...(endpoints.recovery ?? [])]
  if (endpoints.runtime.length === 0 || endpoints.stream.length === 0) return 'no endpoints'
  if (all.length > mostEndpoints) return 'too many endpoints'
  const secure = (url: string): boolean => URL.canParse(url) && ['https:', 'wss:'].includes(new URL(url).protocol)
  return all.every((url) => url.length <= 512 && secure(url)) ? null : 'an endpoint that is not https or wss'
}

/** What an answer says besides its certificate; planes that know no recovery say nothing. */
export type RecoveryFields = Pick<
  EnrollResponse,
  'counter' | 'recovery_trust' | 'recovery_token' | 'recovery_registered' | 'clock_tolerance_ms' | 'profile'
>

const longestToleranceMs = 86_400_000
const mostRecoveryKeys = 8

/** `about`: whom the counter has to be of. */
export const faultOfRecoveryFields = (
  answer: RecoveryFields,
  about: Pick<Identity, 'domain' | 'nodeId'>,
): string | null => {
  const { counter, recovery_trust: trust, recovery_token: token, clock_tolerance_ms: toleranceMs } = answer
  if (counter !== undefined) {
    const said = parseStatement('counter', counter)?.value
    if (said === undefined) return 'the counter is malformed'
    if (said.domain !== about.domain || said.node !== about.nodeId) return 'the counter is of another node'
  }
  if (token !== undefined && !bearerShape.test(token)) return 'the recovery token is malformed'
  if (toleranceMs !== undefined && (toleranceMs <= 0 || toleranceMs > longestToleranceMs))
    return 'a tolerance of clocks that is none'
  return trust === undefined ? null : faultOfRecoveryTrust(trust)
}

export const faultOfRecoveryTrust = (trust: RecoveryTrust): string | null => {
  if (trust.roots.length > mostRecoveryKeys) return 'too many recovery roots'
  const fault = faultOfRoots(trust.roots)
  if (fault !== null) return `the trust of recovery: ${fault}`
  const keys = trust.statement_keys
  const good = keys.length > 0 && keys.length <= mostRecoveryKeys && keys.every(isPublicKey)
  return good ? null : 'the trust of recovery: no keys for statements, too many, or malformed ones'
}

const isPublicKey = (base64: string): boolean => {
  const der = Buffer.from(base64, 'base64')
  return der.toString('base64') === base64 && keyTypeOfSpki(der) !== null
}

/** How the node comes back from now on. `registered`: what was asked to be taken, or what there was before. */
export const recoveryFrom = (
  answer: RecoveryFields,
  registered: AgentRecovery['credential'],
  former: AgentRecovery | null,
): AgentRecovery | null => {
  const trust = answer.recovery_trust ?? former?.trust
  if (trust === undefined) return null
  const nothing = answer.profile.recovery?.mode === 'deny' || answer.recovery_registered === false
  if (nothing) return { trust, credential: { kind: 'none' } }
  if (answer.recovery_token !== undefined) {
    return { trust, credential: { kind: 'bearer', token: answer.recovery_token } }
  }
  return { trust, credential: registered }
}
