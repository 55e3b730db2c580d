// One name or address belongs to one holder at a time: to a node whose programs may carry it, or to the plane, which never gives
// up a name that it has served. Compared in the commit that registers, signs or serves it.

import { formatIp, parseIp, type IpAddress } from '#platform/ip-address.ts'
import type { NodeId } from '#domain/core/node.ts'

export type NameClaim = {
  /** `dns:` and the name in lower case without a trailing dot, or `ip:` and the canonical address. */
  readonly name: string
  readonly holder: NameHolder
  readonly sinceMs: number
  readonly by: string
  /**
   * When the last leaf with this name has ended for every clock that a program was ever given, which is later than its end by the
   * clock tolerance; 0: none was. Kept here, because the row of a program loses a leaf that is denied, and a machine that has it can
   * still present it.
   */
  readonly carriedUntilMs: number
}

export type NameHolder =
  /** `derived`: made from a registered name by a template of an output. */
  | { readonly kind: 'node'; readonly node: NodeId; readonly derived: boolean }
  | PlaneHolder
  /** It was taken from a node, and may be registered again. */
  | { readonly kind: 'nobody' }

export type PlaneHolder = {
  readonly kind: 'plane'
  /** `address`: a listener or a URL of the plane has it, and no certificate. */
  readonly use: 'certificate' | 'address'
  /** How many join strings without a secret were handed out with it. Nothing shows when they are not needed any more. */
  readonly joinStrings: number
  /**
   * Since when the plane has had this name in its URLs, the last time that it was given it; null: it never had, or a release before
   * 0.4.0 gave it.
   */
  readonly namedAtMs: number | null
  /** It was dropped before and then claimed again, at `sinceMs`. */
  readonly retaken: boolean
  /** It is not served any more, and stays forbidden for programs. */
  readonly dropped: { readonly atMs: number; readonly by: string } | null
}

export type ReadName =
  { readonly kind: 'name'; readonly name: string } | { readonly kind: 'wrong'; readonly why: string }

const longestDnsName = 253
const label = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
const dnsShape = new RegExp(`^${label}(\\.${label})*$`)

/** As claims write it: two texts for one name or address have one result. */
export const readName = (text: string): ReadName => {
  const address = parseIp(text)
  if (address !== null) return readAddress(withoutMapping(address))
  const name = bareName(claimedName(text))
  if (name.includes('*')) return wrong(text, 'is a wildcard, which no certificate gets')
  if (name.length > longestDnsName || !dnsShape.test(name)) return wrong(text, 'is neither a DNS name nor an address')
  // Some clients read a last label of digits as an address.
  if (/(^|\.)[0-9]+$/.test(name)) return wrong(text, 'ends in a number, as no DNS name does')
  if (/(^|\.)localhost$/.test(name)) return wrong(text, 'means every machine itself')
  return { kind: 'name', name: `dns:${name}` }
}

const readAddress = (address: IpAddress): ReadName => {
  const text = formatIp(address)
  return meansEveryMachine(address)
    ? wrong(text, 'is not the address of one machine')
    : { kind: 'name', name: `ip:${text}` }
}

/** Unspecified, loopback, multicast and link-local addresses: other machines have the same. */
const meansEveryMachine = (address: IpAddress): boolean => {
  const [first = 0, second = 0] = address
  if (address.length === 4) return first === 0 || first === 127 || first >= 224 || (first === 169 && second === 254)
  const isLow = address.subarray(0, 15).every((byte) => byte === 0) && (address[15] ?? 0) <= 1
  return isLow || first === 0xff || (first === 0xfe && (second & 0xc0) === 0x80)
}

/** `::ffff:10.0.0.7` is the same machine as `10.0.0.7`. */
const withoutMapping = (address: IpAddress): IpAddress => {
  const isMapped =
    address.length === 16 &&
    address.subarray(0, 10).every((byte) => byte === 0) &&
    address[10] === 0xff &&
    address[11] === 0xff
  return isMapped ? address.slice(12) : address
}

const wrong = (text: string, why: string): ReadName => ({ kind: 'wrong', why: `${text.slice(0, 64)} ${why}` })

/** A host as a URL, a certificate or an option has it, in the form of a claim. A wildcard stays one: the plane may have one. */
export const claimedName = (host: string): string => {
  const address = parseIp(host)
  return address === null ? `dns:${host.toLowerCase().replace(/\.$/, '')}` : `ip:${formatIp(withoutMapping(address))}`
}

/** The wildcard that covers a name, as a claim of the plane has it; null: none can. */
export const wildcardOver = (name: string): string | null =>
  isDnsName(name) && name.includes('.') ? `dns:*${name.slice(name.indexOf('.'))}` : null

/** Of a claim's name, for people and for certificates. */
export const bareName = (name: string): string => name.slice(name.indexOf(':') + 1)

export const isDnsName = (name: string): boolean => name.startsWith('dns:')

/** Null: others may have it. */
export const holderInWords = ({ holder }: NameClaim): string | null => {
  switch (holder.kind) {
    case 'node':
      return holder.node
    case 'plane':
      return holder.dropped === null ? 'the plane, which is reached by it' : 'the plane, which was reached by it'
    case 'nobody':
      return null
  }
}
