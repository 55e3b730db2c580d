// The header of the PROXY protocol, version 2, with which a load balancer begins a connection to say whose it passes on.
// Version 1, which is text, is not read: it has no length, so its end is found by luck.

import { SocketAddress } from 'node:net'
import { formatIp } from './ip-address.ts'

export type ProxyHeader =
  /** The header is not complete: the number of bytes it will have, as far as is known. */
  | { readonly kind: 'incomplete'; readonly bytes: number }
  | { readonly kind: 'invalid'; readonly why: string }
  /** A connection of the balancer itself, such as a health check. */
  | { readonly kind: 'local'; readonly bytes: number }
  /** `address`: of the caller, spelled as a socket would. */
  | { readonly kind: 'proxied'; readonly bytes: number; readonly address: string }

const signature = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a)
const fixedBytes = 16
/** Addresses take 36 of them, and what balancers add to that a few hundred; the field could say 64 KiB. */
const longestRest = 2032

const version2 = 0x20
const commands = { local: 0x00, proxy: 0x01 }
const tcp4 = 0x11
const tcp6 = 0x21

/** Judges the first bytes of a connection; what follows the header is not looked at. Never throws. */
export const parseProxyHeader = (bytes: Uint8Array): ProxyHeader => {
  if (signature.some((byte, at) => at < bytes.length && bytes[at] !== byte)) return invalid('it begins with no header')
  const [versionAndCommand, family, high, low] = bytes.subarray(signature.length, fixedBytes)
  if (versionAndCommand !== undefined && (versionAndCommand & 0xf0) !== version2) return invalid('not version 2')
  if (versionAndCommand === undefined || family === undefined || high === undefined || low === undefined)
    return { kind: 'incomplete', bytes: fixedBytes }
  const rest = (high << 8) | low
  if (rest > longestRest) return invalid('longer than a header has to be')
  const total = fixedBytes + rest
  const command = versionAndCommand & 0x0f
  if (command !== commands.local && command !== commands.proxy) return invalid('an unknown command')
  const proxied = command === commands.proxy
  const addressBytes = family === tcp4 ? 4 : family === tcp6 ? 16 : null
  if (proxied && addressBytes === null) return invalid('not of a TCP connection')
  // Two addresses, two ports; further fields are the business of others.
  if (proxied && addressBytes !== null && rest < 2 * addressBytes + 4) return invalid('too short for its addresses')
  if (bytes.length < total) return { kind: 'incomplete', bytes: total }
  if (!proxied || addressBytes === null) return { kind: 'local', bytes: total }
  return { kind: 'proxied', bytes: total, address: spelled(bytes.subarray(fixedBytes, fixedBytes + addressBytes)) }
}

const invalid = (why: string): ProxyHeader => ({ kind: 'invalid', why })

const spelled = (address: Uint8Array): string =>
  address.length === 4 ? formatIp(address) : new SocketAddress({ address: formatIp(address), family: 'ipv6' }).address
