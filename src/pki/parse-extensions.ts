// Reads the extensions of a certificate. Those we know are understood in full; of the rest only the critical ones
// matter, and are reported.

import { context, contextOf, type DerReader, malformed, tags } from './der.ts'
import { readAny, readAscii, readNamedBits, readOid, readSmallNumber, readTrueIfPresent } from './der-values.ts'
import { keyUsageBits } from './extensions.ts'
import { formatIp } from '#platform/ip-address.ts'
import { oids } from './oids.ts'

export type KeyUsage = keyof typeof keyUsageBits

export type ParsedExtensions = {
  ca: boolean
  pathLen: number | null
  /** Empty when the certificate does not say. */
  keyUsage: readonly KeyUsage[]
  /** `clientAuth`, `serverAuth`, or an object identifier; empty when the certificate does not say. */
  extendedKeyUsage: readonly string[]
  uris: readonly string[]
  dnsNames: readonly string[]
  ips: readonly string[]
  /** How many alternative names are of other kinds. */
  otherNames: number
  /** Hex. */
  subjectKeyId: string | null
  authorityKeyId: string | null
  /** Who says whether it is revoked. */
  ocspUrls: readonly string[]
  crlUrls: readonly string[]
  /** Object identifiers of critical extensions we do not know: such a certificate must not be trusted. */
  unknownCritical: readonly string[]
  /** Object identifiers of all extensions, in their order. */
  extensionIds: readonly string[]
}

const mostExtensions = 32

export const readExtensions = (reader: DerReader): ParsedExtensions => {
  const found: ParsedExtensions = {
    ca: false,
    pathLen: null,
    keyUsage: [],
    extendedKeyUsage: [],
    uris: [],
    dnsNames: [],
    ips: [],
    otherNames: 0,
    subjectKeyId: null,
    authorityKeyId: null,
    ocspUrls: [],
    crlUrls: [],
    unknownCritical: [],
    extensionIds: [],
  }
  const list = reader.inside(tags.sequence)
  if (list.atEnd) malformed('an empty list of extensions')
  const seen = new Set<string>()
  while (!list.atEnd) {
    const extension = list.inside(tags.sequence)
    const id = readOid(extension)
    if (seen.has(id)) malformed('an extension twice')
    seen.add(id)
    if (seen.size > mostExtensions) malformed('too many extensions')
    const critical = readTrueIfPresent(extension)
    const value = extension.over(extension.content(tags.octetString))
    extension.finish()
    const read = readers[id]
    if (read !== undefined) {
      Object.assign(found, read(value))
      value.finish()
    } else if (critical) found.unknownCritical = [...found.unknownCritical, id]
  }
  found.extensionIds = [...seen]
  return found
}

type Read = (value: DerReader) => Partial<ParsedExtensions>

const basicConstraints: Read = (value) => {
  const inside = value.inside(tags.sequence)
  const ca = readTrueIfPresent(inside)
  const pathLen = inside.atEnd ? null : readSmallNumber(inside)
  inside.finish()
  if (!ca && pathLen !== null) malformed('a path length on a certificate that is not a CA')
  return { ca, pathLen }
}

const usageByBit = Object.keys(keyUsageBits) as KeyUsage[]

const keyUsage: Read = (value) => {
  const usages = readNamedBits(value).map((bit) => usageByBit[bit] ?? malformed('an unknown key usage'))
  if (usages.length === 0) malformed('a key usage that allows nothing')
  return { keyUsage: usages }
}

const purposes: Readonly<Record<string, string>> = { [oids.clientAuth]: 'clientAuth', [oids.serverAuth]: 'serverAuth' }

const extendedKeyUsage: Read = (value) => {
  const inside = value.inside(tags.sequence)
  const usages: string[] = []
  while (!inside.atEnd) {
    const id = readOid(inside)
    usages.push(purposes[id] ?? id)
  }
  if (usages.length === 0) malformed('an extended key usage that allows nothing')
  return { extendedKeyUsage: usages }
}

const subjectAltName: Read = (value) => {
  const inside = value.inside(tags.sequence)
  if (inside.atEnd) malformed('an empty list of alternative names')
  const uris: string[] = []
  const dnsNames: string[] = []
  const ips: string[] = []
  let otherNames = 0
  while (!inside.atEnd) {
    if (inside.next === context(6)) uris.push(readAscii(inside, context(6)))
    else if (inside.next === context(2)) dnsNames.push(readAscii(inside, context(2)))
    else if (inside.next === context(7)) ips.push(readIp(inside))
    else {
      readAny(inside)
      otherNames++
    }
  }
  return { uris, dnsNames, ips, otherNames }
}

const readIp = (names: DerReader): string => {
  const bytes = names.content(context(7))
  if (bytes.length !== 4 && bytes.length !== 16) malformed('an IP address of a strange length')
  return formatIp(bytes)
}

const subjectKeyId: Read = (value) => ({ subjectKeyId: readKeyId(value, tags.octetString) })

const authorityKeyId: Read = (value) => {
  const inside = value.inside(tags.sequence)
  const id = inside.next === context(0) ? readKeyId(inside, context(0)) : null
  if (inside.next === contextOf(1)) readAny(inside)
  if (inside.next === context(2)) readAny(inside)
  inside.finish()
  return { authorityKeyId: id }
}

const readKeyId = (reader: DerReader, tag: number): string => {
  const bytes = reader.content(tag)
  if (bytes.length === 0 || bytes.length > 64) malformed('a key identifier of a strange length')
  return Buffer.from(bytes).toString('hex')
}

const authorityInfoAccess: Read = (value) => {
  const list = value.inside(tags.sequence)
  const ocspUrls: string[] = []
  while (!list.atEnd) {
    const access = list.inside(tags.sequence)
    const method = readOid(access)
    const url = urlOrNull(access)
    access.finish()
    if (method === oids.ocsp && url !== null) ocspUrls.push(url)
  }
  return { ocspUrls }
}

const crlDistributionPoints: Read = (value) => {
  const list = value.inside(tags.sequence)
  const crlUrls: string[] = []
  while (!list.atEnd) {
    const point = list.inside(tags.sequence)
    if (point.next === contextOf(0)) crlUrls.push(...fullName(point.inside(contextOf(0))))
    // For which reasons, and who signs the list.
    while (!point.atEnd) readAny(point)
  }
  return { crlUrls }
}

const fullName = (name: DerReader): string[] => {
  const urls: string[] = []
  if (name.next === contextOf(0)) {
    const names = name.inside(contextOf(0))
    while (!names.atEnd) {
      const url = urlOrNull(names)
      if (url !== null) urls.push(url)
    }
  } else readAny(name)
  name.finish()
  return urls
}

/** Of a general name; null: it is another one. */
const urlOrNull = (names: DerReader): string | null => {
  if (names.next === context(6)) return readAscii(names, context(6))
  readAny(names)
  return null
}

const readers: Readonly<Record<string, Read>> = {
  [oids.basicConstraints]: basicConstraints,
  [oids.keyUsage]: keyUsage,
  [oids.extendedKeyUsage]: extendedKeyUsage,
  [oids.subjectAltName]: subjectAltName,
  [oids.subjectKeyId]: subjectKeyId,
  [oids.authorityKeyId]: authorityKeyId,
  [oids.authorityInfoAccess]: authorityInfoAccess,
  [oids.crlDistributionPoints]: crlDistributionPoints,
}
