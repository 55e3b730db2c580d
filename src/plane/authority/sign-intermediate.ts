// The offline half of the ceremony: where the root's key is, without a plane, a request becomes a CA.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { domainCaSpec, issuingSpec, workersIssuingSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { loadPrivateKey, type PrivateKey } from '#pki/keys.ts'
import { isSignedBy, parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { Random } from '#platform/random.ts'
import { newSerial } from './ca-signer.ts'
import { DerReader, orMalformed, tags } from '#pki/der.ts'
import { readSmallNumber } from '#pki/der-values.ts'
import { makeCsr, parseCsr } from '#pki/csr.ts'
import { readName } from '#pki/name.ts'

export type Ceremony = {
  readonly rootKeyPem: string
  readonly rootCertificatePem: string
  readonly requestPem: string
  readonly lifetimeMs: number
  readonly nowMs: number
  readonly random: Random
}

/** PEM of the new CA's certificate, for `ca import`. */
export const signIntermediate = (ceremony: Ceremony): string | Refusal => {
  const { nowMs, lifetimeMs } = ceremony
  const rootDer = fromPem('CERTIFICATE', ceremony.rootCertificatePem)
  const root = rootDer === null ? null : parseCertificate(rootDer)
  if (root === null || root.kind === 'malformed' || !root.ca || !isSignedBy(root, root)) {
    return no('what was given as the root certificate is none')
  }
  const key = privateKey(ceremony.rootKeyPem)
  if (key === null || !sameBytes(key.spki, root.spki)) return no('the key is not that of the root certificate')
  if (nowMs < root.notBeforeMs || nowMs >= root.notAfterMs)
    return no("the root is not valid now by this machine's clock")
  if (!(lifetimeMs > 0)) return no('the lifetime has to be longer than nothing')

  const request = readRequest(ceremony.requestPem)
  if (request.kind === 'malformed') return no(`the request: ${request.why}`)
  if (root.pathLen !== null && root.pathLen <= pathLenOf[request.role]) {
    return no(`the root's path length of ${root.pathLen} leaves no room for a ${request.role}`)
  }
  const specOf = specs[request.role]
  const domain = organizationIn(root.subject)
  const serial = newSerial(ceremony.random)
  const spec = specOf({ domain, spki: request.spki, serial, nowMs, lifetimeMs }, root)
  return toPem('CERTIFICATE', buildCertificate(spec, key))
}

const no = (why: string): Refusal => refuse('CA_REQUEST_INVALID', why)

const privateKey = (pem: string): PrivateKey | null => {
  try {
    return loadPrivateKey(pem)
  } catch {
    return null
  }
}

/** A root of ours has the domain there; one from elsewhere may have none. */
const organizationIn = (subject: string): string => /(?:^|, )O=([^,]+)/.exec(subject)?.[1] ?? 'muster'

// A request for a new CA below the root, carried to wherever the root's key is. Its name says which kind is wanted; the
// root's side reads that and the key, and nothing else.

export type RequestedRole = 'issuing' | 'domain-ca' | 'workers-issuing'

/** How long a path each kind leaves below itself (ruling 1). */
export const pathLenOf: Readonly<Record<RequestedRole, number>> = {
  issuing: 0,
  'domain-ca': 1,
  'workers-issuing': 0,
}

const specs = { issuing: issuingSpec, 'domain-ca': domainCaSpec, 'workers-issuing': workersIssuingSpec } as const

const nameOf: Readonly<Record<RequestedRole, string>> = {
  issuing: 'Muster issuing CA request',
  'domain-ca': 'Muster domain CA request',
  'workers-issuing': 'Muster workers issuing CA request',
}

export const makeRequest = (key: PrivateKey, role: RequestedRole): string => makeCsr(key, nameOf[role])

export type IntermediateRequest = { readonly kind: 'request'; readonly role: RequestedRole; readonly spki: Uint8Array }

export const readRequest = (
  pem: string,
): IntermediateRequest | { readonly kind: 'malformed'; readonly why: string } => {
  const csr = parseCsr(pem)
  if (csr.kind === 'malformed') return csr
  const subject = subjectOf(pem)
  const roles: readonly RequestedRole[] = ['issuing', 'domain-ca', 'workers-issuing']
  const role = roles.find((one) => subject === `CN=${nameOf[one]}`)
  if (role === undefined) return { kind: 'malformed', why: 'not a request made by muster ca request' }
  return { kind: 'request', role, spki: csr.spki }
}

const subjectOf = (pem: string): string | null => {
  const der = fromPem('CERTIFICATE REQUEST', pem)
  if (der === null) return null
  const subject = orMalformed(() => {
    const info = new DerReader(der, 0, der.length, 0).inside(tags.sequence).inside(tags.sequence)
    readSmallNumber(info)
    return readName(info)
  })
  return typeof subject === 'string' ? subject : null
}
