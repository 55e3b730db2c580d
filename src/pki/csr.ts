// Certificate requests (PKCS#10, RFC 2986). Only the public key is taken from one; everything else in it is the
// caller's wish, has to be well-formed, and is forgotten.

import type { KeyType } from '#domain/core/profile.ts'
import { contextOf, type DerReader, type Malformed, malformed, orMalformed, readDer, tags } from './der.ts'
import { readAny, readOid, readSmallNumber, readWholeBits } from './der-values.ts'
import { bits, constructed, encode, raw, sequence, smallNumber } from './der-writer.ts'
import { encodeName, readName } from './name.ts'
import { oids } from './oids.ts'
import { fromPem, toPem } from './pem.ts'
import {
  algorithmIdentifier,
  algorithmOf,
  readSignatureAlgorithm,
  suits,
  verifyAs,
  type SignatureAlgorithm,
  type VerifySignature,
} from './signature.ts'
import { type MadeWith, type Signer, signedWith } from './signer.ts'
import { readSpki, readSpkiToImport } from './spki.ts'

const label = 'CERTIFICATE REQUEST'
const largestPem = 16_384
const mostAttributes = 16

export type ParsedCsr = { readonly kind: 'csr'; readonly spki: Uint8Array; readonly keyType: KeyType }

/** A request whose sender has shown to hold the private key. Cheap checks first, the signature last. */
export const parseCsr = (pem: string): ParsedCsr | Malformed => {
  const der = derOf(pem)
  return der instanceof Uint8Array ? parseCsrDer(der) : der
}

export const parseCsrDer = (der: Uint8Array): ParsedCsr | Malformed => {
  const read = readUnproven(der)
  return read.kind === 'malformed' ? read : judged(read, verifyAs(read.algorithm, read.spki, read.info, read.signature))
}

/** The same, with the signature checked by `verify`: that is most of the work, and other callers need this thread. */
export const parseCsrAside = async (pem: string, verify: VerifySignature): Promise<ParsedCsr | Malformed> => {
  const der = derOf(pem)
  if (!(der instanceof Uint8Array)) return der
  const read = readUnproven(der)
  if (read.kind === 'malformed') return read
  return judged(read, await verify(read.algorithm, read.spki, read.info, read.signature))
}

const derOf = (pem: string): Uint8Array | Malformed => {
  if (pem.length > largestPem) return { kind: 'malformed', why: `more than ${largestPem} characters` }
  return fromPem(label, pem) ?? { kind: 'malformed', why: `not one PEM block ${label}` }
}

/** Whose signature has not been checked. */
type UnprovenCsr = {
  readonly kind: 'unproven'
  readonly spki: Uint8Array
  readonly keyType: KeyType
  readonly algorithm: SignatureAlgorithm
  readonly info: Uint8Array
  readonly signature: Uint8Array
}

const readUnproven = (der: Uint8Array): UnprovenCsr | Malformed => orMalformed(() => readDer(der, readCsr))

const readCsr = (top: DerReader): UnprovenCsr => {
  const request = top.inside(tags.sequence)
  const info = request.whole(tags.sequence)
  const algorithm = readSignatureAlgorithm(request)
  const signature = readWholeBits(request)
  request.finish()

  const { spki, keyType } = readInfo(request.over(info).inside(tags.sequence))
  if (!suits(keyType, algorithm)) malformed(`a signature of ${algorithm}, which a key of ${keyType} cannot make`)
  return { kind: 'unproven', spki, keyType, algorithm, info, signature }
}

const judged = ({ spki, keyType }: UnprovenCsr, isProven: boolean): ParsedCsr | Malformed => {
  // A copy: the key outlives the request it came in.
  if (isProven) return { kind: 'csr', spki: new Uint8Array(spki), keyType }
  return orMalformed(() => {
    // Only now, to say which of the two is wrong: OpenSSL takes no point that is off its curve.
    readSpki(spki)
    return malformed('the signature is not by the key in the request')
  })
}

const readInfo = (info: DerReader): { spki: Uint8Array; keyType: KeyType } => {
  if (readSmallNumber(info) !== 0) malformed('an unknown version of request')
  const subject = info.whole(tags.sequence)
  const spki = info.whole(tags.sequence)
  const keyType = readSpkiToImport(spki).type
  readName(info.over(subject))
  readAttributes(info)
  info.finish()
  return { spki, keyType }
}

const readAttributes = (info: DerReader): void => {
  const attributes = info.setOf(contextOf(0))
  if (attributes.length > mostAttributes) malformed('too many attributes')
  const seen = new Set<string>()
  for (const member of attributes) {
    const attribute = info.over(member).inside(tags.sequence)
    const type = readOid(attribute)
    if (seen.has(type)) malformed('an attribute twice')
    seen.add(type)
    if (attribute.next !== tags.set) malformed('an attribute without a set of values')
    readAny(attribute)
    attribute.finish()
  }
}

/** What a request asks for beside its key. An outside issuer may compare it with what we order. */
export type RequestNames = {
  readonly kind: 'names'
  /** As others read it: the last one. Null: there is none. */
  readonly commonName: string | null
  readonly hasAltNames: boolean
}

/** Of a request that `parseCsr` has taken. */
export const readRequestNames = (der: Uint8Array): RequestNames | Malformed =>
  orMalformed(() =>
    readDer(der, (top) => {
      const request = top.inside(tags.sequence)
      const info = request.inside(tags.sequence)
      readSmallNumber(info)
      const subject = info.whole(tags.sequence)
      info.whole(tags.sequence)
      const commonName = lastCommonName(info.over(subject))
      const hasAltNames = info.setOf(contextOf(0)).some((attribute) => asksForAltNames(info.over(attribute)))
      request.whole(tags.sequence)
      readWholeBits(request)
      return { kind: 'names', commonName, hasAltNames }
    }),
  )

const lastCommonName = (reader: DerReader): string | null => {
  const name = reader.inside(tags.sequence)
  let last: string | null = null
  while (!name.atEnd)
    for (const member of name.setOf(tags.set)) {
      const attribute = name.over(member).inside(tags.sequence)
      if (readOid(attribute) === oids.commonName) last = Buffer.from(attribute.content(attribute.next)).toString('utf8')
    }
  return last
}

/** Whether an attribute is the request for extensions (RFC 2985, 5.4.2) and names the one for alternative names. */
const asksForAltNames = (member: DerReader): boolean => {
  const attribute = member.inside(tags.sequence)
  if (readOid(attribute) !== oids.extensionRequest) return false
  for (const value of attribute.setOf(tags.set)) {
    const extensions = attribute.over(value).inside(tags.sequence)
    while (!extensions.atEnd) if (readOid(extensions.inside(tags.sequence)) === oids.subjectAltName) return true
  }
  return false
}

/** PEM. The name is for people who handle the request: the signer takes only the key. */
export const makeCsr = <S extends Signer>(key: S, commonName: string): MadeWith<S, string> => {
  const info = encode(
    sequence(
      smallNumber(0),
      raw(encodeName({ cn: commonName, o: null, ou: null })),
      raw(key.spki),
      constructed(contextOf(0), []),
    ),
  )
  const algorithm = algorithmIdentifier[algorithmOf[key.type]]
  return signedWith(key, info, (signature) =>
    toPem(label, encode(sequence(raw(info), raw(algorithm), bits(signature)))),
  )
}
