// The offline half of the ceremony: where the root's key is, without a plane, a request becomes a CA.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { domainCaSpec, issuingSpec, rootSpec, workersIssuingSpec } from '#pki/authority-certificates.ts'
import { buildCertificate, fingerprint } from '#pki/certificate.ts'
import type { Signer } from '#pki/signer.ts'
import { isSignedBy, parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { Random } from '#platform/random.ts'
import { newSerial } from './ca-signer.ts'
import { DerReader, type Malformed, orMalformed, tags } from '#pki/der.ts'
import { readSmallNumber } from '#pki/der-values.ts'
import { makeCsr, parseCsr } from '#pki/csr.ts'
import { readName } from '#pki/name.ts'

export type Ceremony = {
  /** Null: what was given is no key. */
  readonly rootKey: Signer | null
  readonly rootCertificatePem: string
  readonly requestPem: string
  readonly lifetimeMs: number
  readonly nowMs: number
  readonly random: Random
}

export type RootOrder = {
  readonly key: Signer
  readonly domain: string
  readonly pathLen: 1 | 2
  readonly lifetimeMs: number
  readonly nowMs: number
  readonly random: Random
}

/** A root for a domain whose planes never have its key. */
export const makeRootCertificate = async ({ key, random, ...order }: RootOrder) => {
  const spec = rootSpec({ ...order, spki: key.spki, serial: newSerial(random) })
  const der = await buildCertificate(spec, key)
  return { pem: toPem('CERTIFICATE', der), sha256: fingerprint(der) }
}

/** PEM of the new CA's certificate, for `ca import`. */
export const signIntermediate = async (ceremony: Ceremony): Promise<string | Refusal> => {
  const { nowMs, lifetimeMs, rootKey: key } = ceremony
  const root = readRoot(ceremony.rootCertificatePem, nowMs)
  if (root.kind === 'malformed') return no(`the root certificate: ${root.why}`)
  if (key === null || !sameBytes(key.spki, root.spki)) return no('the key is not that of the root certificate')
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
  return toPem('CERTIFICATE', await buildCertificate(spec, key))
}

const no = (why: string): Refusal => refuse('CA_REQUEST_INVALID', why)

/** A root that is good now, and that everything here can read. */
export const readRoot = (pem: string, nowMs: number): ParsedCertificate | Malformed => {
  const der = fromPem('CERTIFICATE', pem)
  if (der === null) return { kind: 'malformed', why: 'not one PEM block CERTIFICATE' }
  const root = parseCertificate(der)
  if (root.kind === 'malformed') return root
  const isRoot = root.ca && root.keyUsage.includes('keyCertSign') && isSignedBy(root, root)
  if (!isRoot) return { kind: 'malformed', why: 'it is no CA that has signed itself' }
  if (root.unknownCritical.length > 0)
    return { kind: 'malformed', why: 'it has critical extensions that are not known' }
  if (nowMs < root.notBeforeMs || nowMs >= root.notAfterMs)
    return { kind: 'malformed', why: "it is not valid now by this machine's clock" }
  return root
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

export const makeRequest = async (key: Signer, role: RequestedRole): Promise<string> => makeCsr(key, nameOf[role])

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
