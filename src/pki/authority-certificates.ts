// What the certificates of our hierarchy look like: root, domain CA, issuing CA, and the leaves of nodes, workers and
// servers (rulings 1, 9 and 10).

import type { SigningOrder } from '#domain/core/certificate.ts'
import type { CertificateSpec, Name } from './certificate.ts'
import { wholeSecondMs } from './der-time.ts'
import { longestNamePart } from './name.ts'
import type { ParsedCertificate } from './parse-certificate.ts'
import { keyId } from './spki.ts'

/** For clocks that run a little behind ours. Adds to no lifetime: those count from the time of issue. */
export const backdatingMs = 60_000

const day = 86_400_000
export const rootLifetimeMs = 3652 * day
export const intermediateLifetimeMs = 1826 * day
/** Longer than any machine is switched off. */
export const recoveryRootLifetimeMs = 7305 * day
/** Those who verify programs have it in a file, and people replace such files seldom. */
export const programsRootLifetimeMs = 7305 * day
/** A step-ca has it in its configuration, where an operator has to replace it. */
export const renewalRootLifetimeMs = 7305 * day

export type AuthorityRequest = {
  /** The trust domain. */
  readonly domain: string
  /** The public key of the new authority. */
  readonly spki: Uint8Array
  /** 128 random bits. */
  readonly serial: Uint8Array
  readonly nowMs: number
  readonly lifetimeMs: number
}

/** Path length 2 leaves room for memory issuers under a domain CA; 1 is what document 001 demands and has none. */
export const rootSpec = (request: AuthorityRequest & { readonly pathLen: 1 | 2 }): CertificateSpec =>
  selfSigned('root', request.pathLen, request)

/** Signs the certificate of the recovery listener itself, and nothing below it. */
export const recoveryRootSpec = (request: AuthorityRequest): CertificateSpec => selfSigned('recovery root', 0, request)

/** Of the leaves of programs. Whoever trusts it trusts programs, and neither nodes nor the plane. */
export const programsRootSpec = (request: AuthorityRequest): CertificateSpec => selfSigned('programs root', 1, request)

/** Signs the one certificate that a step-ca gives renewals for. Whatever else hung under it could get certificates there for any name. */
export const renewalRootSpec = (request: AuthorityRequest): CertificateSpec => selfSigned('renewal root', 0, request)

/** That one certificate. It never outlives the root above it. */
export const renewalCredentialSpec = (request: AuthorityRequest, root: ParsedCertificate): CertificateSpec => ({
  serial: request.serial,
  subject: authorityName('renewals', request),
  issuer: root.subjectName,
  notBeforeMs: wholeSecondMs(Math.max(request.nowMs - backdatingMs, root.notBeforeMs)),
  notAfterMs: wholeSecondMs(Math.min(request.nowMs + request.lifetimeMs, root.notAfterMs)),
  spki: request.spki,
  extensions: {
    ca: null,
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['clientAuth'],
    uris: [],
    dnsNames: [],
    ips: [],
    authorityKeyId: keyIdOf(root),
    aiaUrl: null,
    cdpUrl: null,
  },
})

const selfSigned = (role: string, pathLen: number, request: AuthorityRequest): CertificateSpec => {
  const subject = authorityName(role, request)
  return {
    serial: request.serial,
    subject,
    issuer: subject,
    notBeforeMs: wholeSecondMs(request.nowMs - backdatingMs),
    notAfterMs: wholeSecondMs(request.nowMs + request.lifetimeMs),
    spki: request.spki,
    extensions: authorityExtensions(pathLen, keyId(request.spki)),
  }
}

/** The online CA that memory issuers hang under. */
export const domainCaSpec = (request: AuthorityRequest, root: ParsedCertificate): CertificateSpec =>
  intermediateSpec('domain CA', 1, request, root)

/** Signs leaves only. */
export const issuingSpec = (request: AuthorityRequest, parent: ParsedCertificate): CertificateSpec =>
  intermediateSpec('issuing CA', 0, request, parent)

/** Signs the leaves of programs only. */
export const programsIssuingSpec = (request: AuthorityRequest, parent: ParsedCertificate): CertificateSpec =>
  intermediateSpec('programs issuing CA', 0, request, parent)

/** Signs the certificates of workers only, and says so itself: to those who check chains none of them is a server's. */
export const workersIssuingSpec = (request: AuthorityRequest, parent: ParsedCertificate): CertificateSpec => {
  const spec = intermediateSpec('workers issuing CA', 0, request, parent)
  return { ...spec, extensions: { ...spec.extensions, extendedKeyUsage: ['clientAuth'] } }
}

const intermediateSpec = (
  role: string,
  pathLen: number,
  request: AuthorityRequest,
  parent: ParsedCertificate,
): CertificateSpec => {
  if (!parent.ca || (parent.pathLen !== null && parent.pathLen <= pathLen)) {
    throw new Error(`the CA above leaves no room for a ${role}: its path length is ${parent.pathLen ?? 'absent'}`)
  }
  return {
    serial: request.serial,
    subject: authorityName(role, request),
    issuer: parent.subjectName,
    notBeforeMs: wholeSecondMs(request.nowMs - backdatingMs),
    notAfterMs: wholeSecondMs(Math.min(request.nowMs + request.lifetimeMs, parent.notAfterMs)),
    spki: request.spki,
    extensions: authorityExtensions(pathLen, keyIdOf(parent)),
  }
}

/** One name for each key: two authorities of the same name would send verifiers down the wrong path. */
const authorityName = (role: string, { domain, spki }: AuthorityRequest): Name => ({
  cn: `Muster ${role} ${keyId(spki).slice(0, 16)}`,
  // For people to read; it identifies nothing, so a long one may be cut.
  o: domain.slice(0, longestNamePart),
  ou: null,
})

const authorityExtensions = (pathLen: number, authorityKeyId: string): CertificateSpec['extensions'] => ({
  ca: { pathLen },
  keyUsage: ['keyCertSign', 'cRLSign'],
  extendedKeyUsage: [],
  uris: [],
  dnsNames: [],
  ips: [],
  authorityKeyId,
  aiaUrl: null,
  cdpUrl: null,
})

/** Answers for an issuer as long as that lives, also when the key of the issuer is gone. */
export const responderSpec = (request: AuthorityRequest, issuer: ParsedCertificate): CertificateSpec => ({
  serial: request.serial,
  subject: authorityName('OCSP responder', request),
  issuer: issuer.subjectName,
  notBeforeMs: wholeSecondMs(Math.max(request.nowMs - backdatingMs, issuer.notBeforeMs)),
  notAfterMs: issuer.notAfterMs,
  spki: request.spki,
  extensions: {
    ca: null,
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['ocspSigning'],
    uris: [],
    dnsNames: [],
    ips: [],
    authorityKeyId: keyIdOf(issuer),
    aiaUrl: null,
    cdpUrl: null,
  },
})

/** Where those who verify a leaf can ask whether it still holds; null: nowhere. */
export type StatusPlaces = { readonly ocspUrl: string | null; readonly crlUrl: string | null }

const nowhere: StatusPlaces = { ocspUrl: null, crlUrl: null }

/** A leaf as ordered, which never outlives its issuer. What the order says of places goes before `status`. */
export const leafSpec = (
  order: SigningOrder,
  issuer: ParsedCertificate,
  serial: Uint8Array,
  status: StatusPlaces = nowhere,
): CertificateSpec => ({
  serial,
  subject: { cn: textOrNull(order.subject.cn), o: textOrNull(order.subject.o), ou: textOrNull(order.subject.ou) },
  issuer: issuer.subjectName,
  notBeforeMs: wholeSecondMs(order.issuedAtMs - backdatingMs),
  notAfterMs: wholeSecondMs(Math.min(order.issuedAtMs + order.lifetimeMs, issuer.notAfterMs)),
  spki: order.publicKey,
  extensions: {
    ca: null,
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: order.usage === 'both' ? ['serverAuth', 'clientAuth'] : [`${order.usage}Auth`],
    uris: order.uriSans,
    dnsNames: order.dnsSans,
    ips: order.ipSans,
    authorityKeyId: keyIdOf(issuer),
    aiaUrl: order.aiaUrl,
    cdpUrl: order.cdpUrl ?? status.crlUrl,
    ocspUrl: status.ocspUrl,
  },
})

const textOrNull = (text: string): string | null => (text === '' ? null : text)

const keyIdOf = (issuer: ParsedCertificate): string => issuer.subjectKeyId ?? keyId(issuer.spki)
