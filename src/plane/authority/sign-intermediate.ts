// The offline half of the ceremony: where the root's key is, without a plane, a request becomes a CA.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { domainCaSpec, issuingSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { loadPrivateKey, type PrivateKey } from '#pki/keys.ts'
import { isSignedBy, parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { Random } from '#platform/random.ts'
import { pathLenOf, readRequest } from './intermediate-request.ts'
import { serialBytes } from './ca-signer.ts'

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
  const specOf = request.role === 'domain-ca' ? domainCaSpec : issuingSpec
  const domain = organizationIn(root.subject)
  const serial = ceremony.random.bytes(serialBytes)
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
