// Reads certificate revocation lists (RFC 5280, section 5), strictly. Reading checks no signature: `isListSignedBy` does.

import { contextOf, type DerReader, malformed, orMalformed, readDer, tags, type Malformed } from './der.ts'
import { readTime } from './der-time.ts'
import { readAny, readInteger, readOid, readSmallNumber, readTrueIfPresent, readWholeBits } from './der-values.ts'
import { readName } from './name.ts'
import { oids } from './oids.ts'
import type { ParsedCertificate } from './parse-certificate.ts'
import { readSignatureAlgorithm, suits, verifyAs, type SignatureAlgorithm } from './signature.ts'

export type ParsedList = {
  readonly kind: 'list'
  /** What the signature is over. */
  readonly tbs: Uint8Array
  readonly signatureAlgorithm: SignatureAlgorithm
  readonly signature: Uint8Array
  /** DER: that is how names are compared. */
  readonly issuerName: Uint8Array
  /** Hex. */
  readonly authorityKeyId: string
  readonly number: number
  readonly thisUpdateMs: number
  readonly nextUpdateMs: number
  /** All entries as they are encoded: two lists revoke the same if these are equal. Empty: nothing is revoked. */
  readonly entries: Uint8Array
}

const largestList = 4 << 20

/** A full list: one that only adds to another is malformed here, because a reader of it alone would let others pass. */
export const parseCrl = (der: Uint8Array): ParsedList | Malformed => {
  if (der.length > largestList) return { kind: 'malformed', why: `more than ${largestList} bytes` }
  return orMalformed(() => readDer(der, readList))
}

const readList = (top: DerReader): ParsedList => {
  const list = top.inside(tags.sequence)
  const tbs = list.whole(tags.sequence)
  const signatureAlgorithm = readSignatureAlgorithm(list)
  const signature = readWholeBits(list)
  list.finish()

  const body = list.over(tbs).inside(tags.sequence)
  if (readSmallNumber(body) !== 1) malformed('not a list of version 2')
  if (readSignatureAlgorithm(body) !== signatureAlgorithm) malformed('two different signature algorithms')
  const issuerName = body.whole(tags.sequence)
  readName(body.over(issuerName))
  const thisUpdateMs = readTime(body)
  const nextUpdateMs = readTime(body)
  const entries = body.next === tags.sequence ? body.whole(tags.sequence) : new Uint8Array(0)
  if (entries.length > 0) readAny(body.over(entries))
  const extensions = body.inside(contextOf(0))
  body.finish()
  const { authorityKeyId, number } = readExtensions(extensions.inside(tags.sequence))
  extensions.finish()
  if (authorityKeyId === null) return malformed('a list that does not name the key of its issuer')
  if (number === null) return malformed('a list without a number')
  const dates = { thisUpdateMs, nextUpdateMs }
  return { kind: 'list', tbs, signatureAlgorithm, signature, issuerName, authorityKeyId, number, ...dates, entries }
}

type Found = { authorityKeyId: string | null; number: number | null }

const readExtensions = (list: DerReader): Found => {
  const found: Found = { authorityKeyId: null, number: null }
  const seen = new Set<string>()
  while (!list.atEnd) {
    const extension = list.inside(tags.sequence)
    const id = readOid(extension)
    if (seen.has(id)) malformed('an extension twice')
    seen.add(id)
    const critical = readTrueIfPresent(extension)
    const value = extension.over(extension.content(tags.octetString))
    extension.finish()
    if (id === oids.authorityKeyId) found.authorityKeyId = readKeyId(value)
    else if (id === oids.crlNumber) found.number = readListNumber(value)
    else if (id === oids.deltaCrlIndicator) malformed('a list that only adds to another')
    else if (critical) malformed(`an unknown critical extension ${id}`)
  }
  return found
}

const readKeyId = (value: DerReader): string => {
  const inside = value.inside(tags.sequence)
  const id = Buffer.from(inside.content(0x80)).toString('hex')
  inside.finish()
  value.finish()
  return id
}

const readListNumber = (value: DerReader): number => {
  const bytes = readInteger(value)
  value.finish()
  if ((bytes[0] ?? 0x80) >= 0x80 || bytes.length > 7) malformed('the number of a list out of range')
  const number = bytes.reduce((sum, byte) => sum * 256 + byte, 0)
  return Number.isSafeInteger(number) ? number : malformed('the number of a list out of range')
}

/** Whether this authority has signed the list, and may sign lists. */
export const isListSignedBy = (list: ParsedList, issuer: ParsedCertificate): boolean =>
  issuer.ca &&
  issuer.keyUsage.includes('cRLSign') &&
  issuer.subjectKeyId === list.authorityKeyId &&
  Buffer.compare(issuer.subjectName, list.issuerName) === 0 &&
  suits(issuer.keyType, list.signatureAlgorithm) &&
  verifyAs(list.signatureAlgorithm, issuer.spki, list.tbs, list.signature)
