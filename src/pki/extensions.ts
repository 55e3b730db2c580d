// The extensions our certificates carry, as RFC 5280 (and RFC 9295 for Ed25519) wants them.

import { context, contextOf, tags } from './der.ts'
import {
  bool,
  constructed,
  type Der,
  encode,
  namedBits,
  octets,
  oid,
  primitive,
  raw,
  sequence,
  smallNumber,
  text,
} from './der-writer.ts'
import { parseIp } from '#platform/ip-address.ts'
import { oids } from './oids.ts'

export type Extensions = {
  readonly ca: { readonly pathLen: number | null } | null
  readonly keyUsage: readonly ('digitalSignature' | 'keyCertSign' | 'cRLSign')[]
  readonly extendedKeyUsage: readonly ('clientAuth' | 'serverAuth' | 'ocspSigning')[]
  readonly uris: readonly string[]
  readonly dnsNames: readonly string[]
  readonly ips: readonly string[]
  /** Hex; its own key's for a root. */
  readonly authorityKeyId: string
  /** Where the certificate of the issuer can be had. */
  readonly aiaUrl: string | null
  readonly cdpUrl: string | null
  /** Where its status can be asked for. Left out: nowhere. */
  readonly ocspUrl?: string | null
}

export const keyUsageBits = {
  digitalSignature: 0,
  nonRepudiation: 1,
  keyEncipherment: 2,
  dataEncipherment: 3,
  keyAgreement: 4,
  keyCertSign: 5,
  cRLSign: 6,
  encipherOnly: 7,
  decipherOnly: 8,
} as const

const id = {
  basicConstraints: oid(oids.basicConstraints),
  keyUsage: oid(oids.keyUsage),
  extendedKeyUsage: oid(oids.extendedKeyUsage),
  subjectKeyId: oid(oids.subjectKeyId),
  authorityKeyId: oid(oids.authorityKeyId),
  subjectAltName: oid(oids.subjectAltName),
  authorityInfoAccess: oid(oids.authorityInfoAccess),
  crlDistributionPoints: oid(oids.crlDistributionPoints),
  ocspNoCheck: oid(oids.ocspNoCheck),
}

export const extension = (type: Der, critical: boolean, value: Der): Der => {
  const content = constructed(tags.octetString, [value])
  return critical ? sequence(type, bool(true), content) : sequence(type, content)
}

// What every leaf carries alike is encoded once: signing is the hot path.
const ready = (type: Der, critical: boolean, value: Der): Der => raw(encode(extension(type, critical, value)))
const notCa = ready(id.basicConstraints, true, sequence())
const signsOnly = ready(id.keyUsage, true, namedBits([keyUsageBits.digitalSignature]))
const clientOnly = ready(id.extendedKeyUsage, false, sequence(oid(oids.clientAuth)))
const serverOnly = ready(id.extendedKeyUsage, false, sequence(oid(oids.serverAuth)))
// A client does not check the revocation of the responder's own certificate (RFC 6960, 4.2.2.2.1).
const noCheck = ready(id.ocspNoCheck, false, primitive(tags.null, new Uint8Array(0)))

/** `subjectKeyId` in hex. With an empty subject the alternative names are all there is, and have to be understood. */
export const encodeExtensions = (of: Extensions, subjectKeyId: string, subjectIsEmpty: boolean): Der => {
  const all = [basicConstraints(of.ca), keyUsage(of.keyUsage)]
  if (of.extendedKeyUsage.length > 0) all.push(extendedKeyUsage(of.extendedKeyUsage))
  all.push(extension(id.subjectKeyId, false, octets(Buffer.from(subjectKeyId, 'hex'))))
  const authority = primitive(context(0), Buffer.from(of.authorityKeyId, 'hex'))
  all.push(extension(id.authorityKeyId, false, sequence(authority)))
  const names = alternativeNames(of)
  if (names.length === 0 && subjectIsEmpty) throw new Error('a certificate without any name')
  if (names.length > 0) all.push(extension(id.subjectAltName, subjectIsEmpty, sequence(...names)))
  if (of.extendedKeyUsage.includes('ocspSigning')) all.push(noCheck)
  const access = [...accessTo(oids.ocsp, of.ocspUrl ?? null), ...accessTo(oids.caIssuers, of.aiaUrl)]
  if (access.length > 0) all.push(extension(id.authorityInfoAccess, false, sequence(...access)))
  if (of.cdpUrl !== null) all.push(extension(id.crlDistributionPoints, false, crlAt(of.cdpUrl)))
  return constructed(contextOf(3), [sequence(...all)])
}

const basicConstraints = (ca: Extensions['ca']): Der => {
  if (ca === null) return notCa
  const pathLen = ca.pathLen === null ? [] : [smallNumber(ca.pathLen)]
  return extension(id.basicConstraints, true, sequence(bool(true), ...pathLen))
}

const keyUsage = (usages: Extensions['keyUsage']): Der => {
  if (usages.length === 1 && usages[0] === 'digitalSignature') return signsOnly
  return extension(id.keyUsage, true, namedBits(usages.map((usage) => keyUsageBits[usage])))
}

const extendedKeyUsage = (usages: Extensions['extendedKeyUsage']): Der => {
  if (usages.length === 1 && usages[0] === 'clientAuth') return clientOnly
  if (usages.length === 1 && usages[0] === 'serverAuth') return serverOnly
  return extension(id.extendedKeyUsage, false, sequence(...usages.map((usage) => oid(oids[usage]))))
}

const alternativeNames = (of: Extensions): Der[] => [
  ...of.dnsNames.map((name) => ascii(2, name)),
  ...of.uris.map(uri),
  ...of.ips.map((ip) => {
    const bytes = parseIp(ip)
    if (bytes === null) throw new Error('not an IP address')
    return primitive(context(7), bytes)
  }),
]

const uri = (value: string): Der => ascii(6, value)

const ascii = (number: number, value: string): Der => {
  if (!/^[\x21-\x7e]+$/.test(value))
    throw new Error('a name or address with characters that do not belong in a certificate')
  return text(context(number), value)
}

const accessTo = (method: string, url: string | null): Der[] => (url === null ? [] : [sequence(oid(method), uri(url))])

/** CRLDistributionPoints; that of the freshest list is written the same way. */
export const crlAt = (url: string): Der =>
  sequence(sequence(constructed(contextOf(0), [constructed(contextOf(0), [uri(url)])])))
