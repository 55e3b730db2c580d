// The extensions our certificates carry, as RFC 5280 (and RFC 9295 for Ed25519) wants them.

import { context, contextOf } from './der.ts'
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
import { ipBytes } from './ip-address.ts'
import { oids } from './oids.ts'

export type Extensions = {
  readonly ca: { readonly pathLen: number | null } | null
  readonly keyUsage: readonly ('digitalSignature' | 'keyCertSign' | 'cRLSign')[]
  readonly extendedKeyUsage: readonly ('clientAuth' | 'serverAuth')[]
  readonly uris: readonly string[]
  readonly dnsNames: readonly string[]
  readonly ips: readonly string[]
  /** Hex; its own key's for a root. */
  readonly authorityKeyId: string
  /** Where the certificate of the issuer can be had. */
  readonly aiaUrl: string | null
  readonly cdpUrl: string | null
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

const extension = (id: string, critical: boolean, value: Der): Der => {
  const content = octets(encode(value))
  return critical ? sequence(oid(id), bool(true), content) : sequence(oid(id), content)
}

// What every leaf carries alike is encoded once: signing is the hot path.
const ready = (id: string, critical: boolean, value: Der): Der => raw(encode(extension(id, critical, value)))
const notCa = ready(oids.basicConstraints, true, sequence())
const signsOnly = ready(oids.keyUsage, true, namedBits([keyUsageBits.digitalSignature]))
const clientOnly = ready(oids.extendedKeyUsage, false, sequence(oid(oids.clientAuth)))
const serverOnly = ready(oids.extendedKeyUsage, false, sequence(oid(oids.serverAuth)))

/** `subjectKeyId` in hex. With an empty subject the alternative names are all there is, and have to be understood. */
export const encodeExtensions = (of: Extensions, subjectKeyId: string, subjectIsEmpty: boolean): Der => {
  const all = [basicConstraints(of.ca), keyUsage(of.keyUsage)]
  if (of.extendedKeyUsage.length > 0) all.push(extendedKeyUsage(of.extendedKeyUsage))
  all.push(extension(oids.subjectKeyId, false, octets(Buffer.from(subjectKeyId, 'hex'))))
  const authority = primitive(context(0), Buffer.from(of.authorityKeyId, 'hex'))
  all.push(extension(oids.authorityKeyId, false, sequence(authority)))
  const names = alternativeNames(of)
  if (names.length === 0 && subjectIsEmpty) throw new Error('a certificate without any name')
  if (names.length > 0) all.push(extension(oids.subjectAltName, subjectIsEmpty, sequence(...names)))
  if (of.aiaUrl !== null) all.push(extension(oids.authorityInfoAccess, false, issuerAt(of.aiaUrl)))
  if (of.cdpUrl !== null) all.push(extension(oids.crlDistributionPoints, false, crlAt(of.cdpUrl)))
  return constructed(contextOf(3), [sequence(...all)])
}

const basicConstraints = (ca: Extensions['ca']): Der => {
  if (ca === null) return notCa
  const pathLen = ca.pathLen === null ? [] : [smallNumber(ca.pathLen)]
  return extension(oids.basicConstraints, true, sequence(bool(true), ...pathLen))
}

const keyUsage = (usages: Extensions['keyUsage']): Der => {
  if (usages.length === 1 && usages[0] === 'digitalSignature') return signsOnly
  return extension(oids.keyUsage, true, namedBits(usages.map((usage) => keyUsageBits[usage])))
}

const extendedKeyUsage = (usages: Extensions['extendedKeyUsage']): Der => {
  if (usages.length === 1) return usages[0] === 'clientAuth' ? clientOnly : serverOnly
  return extension(oids.extendedKeyUsage, false, sequence(...usages.map((usage) => oid(oids[usage]))))
}

const alternativeNames = (of: Extensions): Der[] => [
  ...of.dnsNames.map((name) => ascii(2, name)),
  ...of.uris.map(uri),
  ...of.ips.map((ip) => {
    const bytes = ipBytes(ip)
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

const issuerAt = (url: string): Der => sequence(sequence(oid(oids.caIssuers), uri(url)))

const crlAt = (url: string): Der =>
  sequence(sequence(constructed(contextOf(0), [constructed(contextOf(0), [uri(url)])])))
