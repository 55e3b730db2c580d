// Reads OCSP requests (RFC 6960, 4.1), strictly and within bounds: they come from anonymous callers.

import { contextOf, type DerReader, type Malformed, malformed, orMalformed, readDer, tags } from './der.ts'
import { readAny, readInteger, readOid, readTrueIfPresent } from './der-values.ts'
import { serialHex } from './certificate.ts'
import { oids } from './oids.ts'

export type CertId = {
  /** The bytes of the request: an answer repeats them. */
  readonly der: Uint8Array
  /** Null: an unknown algorithm, which matches no certificate. */
  readonly hash: 'sha1' | 'sha256' | null
  /** Of the issuer's name and public key, hex. */
  readonly issuerNameHash: string
  readonly issuerKeyHash: string
  /** Hex, no leading zeros. */
  readonly serial: string
}

export type OcspRequest = {
  readonly kind: 'ocsp-request'
  readonly asked: readonly [CertId, ...CertId[]]
  readonly nonce: Uint8Array | null
}

export const largestOcspRequest = 4096
const mostAsked = 32
/** RFC 9654, which took the place of RFC 8954 and its 32. */
const longestNonce = 128
const mostExtensions = 16

/** The signature of a request is not checked: every caller may have the answer. */
export const parseOcspRequest = (der: Uint8Array): OcspRequest | Malformed => {
  if (der.length > largestOcspRequest) return { kind: 'malformed', why: `more than ${largestOcspRequest} bytes` }
  return orMalformed(() => readDer(der, readRequest))
}

const readRequest = (top: DerReader): OcspRequest => {
  const request = top.inside(tags.sequence)
  const body = request.inside(tags.sequence)
  if (request.next === contextOf(0)) readAny(request)
  request.finish()

  // Version 1 is the default and left out; there is no other.
  if (body.next === contextOf(0)) malformed('a request of another version, or a default written out')
  if (body.next === contextOf(1)) readAny(body)
  const list = body.inside(tags.sequence)
  const asked: CertId[] = []
  while (!list.atEnd) {
    if (asked.length === mostAsked) malformed(`more than ${mostAsked} certificates asked for`)
    asked.push(readSingle(list.inside(tags.sequence)))
  }
  const nonce = body.next === contextOf(2) ? readExtensions(body.inside(contextOf(2))) : null
  body.finish()
  const [first, ...more] = asked
  if (first === undefined) return malformed('a request that asks for nothing')
  return { kind: 'ocsp-request', asked: [first, ...more], nonce }
}

const readSingle = (single: DerReader): CertId => {
  const der = single.whole(tags.sequence)
  const found = readCertId(single.over(der), der)
  if (single.next === contextOf(0)) readExtensions(single.inside(contextOf(0)))
  single.finish()
  return found
}

const hashes: Readonly<Record<string, { readonly hash: 'sha1' | 'sha256'; readonly length: number }>> = {
  [oids.sha1]: { hash: 'sha1', length: 20 },
  [oids.sha256]: { hash: 'sha256', length: 32 },
}

const readCertId = (reader: DerReader, der: Uint8Array): CertId => {
  const inside = reader.inside(tags.sequence)
  const known = readHash(inside.inside(tags.sequence))
  const [issuerNameHash, issuerKeyHash] = [readDigest(inside), readDigest(inside)]
  const number = readInteger(inside)
  inside.finish()
  if ((number[0] ?? 0x80) >= 0x80 || number.length > 20) malformed('a serial number that is negative or too long')
  if (known !== null && (issuerNameHash.length !== known.length * 2 || issuerKeyHash.length !== known.length * 2))
    malformed('a digest of the wrong length')
  return { der, hash: known === null ? null : known.hash, issuerNameHash, issuerKeyHash, serial: serialHex(number) }
}

/** With parameters NULL or none: both are in use. */
const readHash = (algorithm: DerReader): (typeof hashes)[string] | null => {
  const known = hashes[readOid(algorithm)] ?? null
  if (known === null) {
    if (!algorithm.atEnd) readAny(algorithm)
  } else if (!algorithm.atEnd && algorithm.content(tags.null).length > 0) malformed('a null with content')
  algorithm.finish()
  return known
}

const readDigest = (reader: DerReader): string => {
  const digest = reader.content(tags.octetString)
  if (digest.length === 0 || digest.length > 64) malformed('a digest of a strange length')
  return Buffer.from(digest).toString('hex')
}

/** The nonce among them, or null. */
const readExtensions = (outer: DerReader): Uint8Array | null => {
  const list = outer.inside(tags.sequence)
  outer.finish()
  const seen = new Set<string>()
  let nonce: Uint8Array | null = null
  while (!list.atEnd) {
    const one = list.inside(tags.sequence)
    const type = readOid(one)
    if (seen.has(type)) malformed('an extension twice')
    seen.add(type)
    if (seen.size > mostExtensions) malformed('too many extensions')
    const critical = readTrueIfPresent(one)
    const value = one.over(one.content(tags.octetString))
    one.finish()
    if (type === oids.ocspNonce) nonce = readNonce(value)
    else if (critical) malformed(`a critical extension ${type} that is not known here`)
  }
  return nonce
}

const readNonce = (value: DerReader): Uint8Array => {
  const nonce = value.content(tags.octetString)
  value.finish()
  if (nonce.length === 0 || nonce.length > longestNonce) malformed('a nonce of a length that is not allowed')
  return nonce
}
