// Which addresses a webhook may be sent to. Whoever chooses its name, or answers for it in DNS, must not reach what only
// this machine can: so an address is public, or an operator has listed its network.

import { ipBytes } from '#pki/ip-address.ts'

export type Network = { readonly bytes: Uint8Array; readonly bits: number }

/** `10.0.0.0/8`; null for anything else, and where bits behind the prefix are set. */
export const parseNetwork = (text: string): Network | null => {
  const [, address = '', length = ''] = /^([0-9a-fA-F.:]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const bytes = ipBytes(address)
  const bits = Number(length)
  if (bytes === null || length === '' || bits > bytes.length * 8) return null
  const network = { bytes, bits }
  return bytes.every((byte, at) => (byte & ~maskAt(network, at)) === 0) ? network : null
}

/** Every address that is not one of the Internet at large, as IANA keeps the lists (RFC 6890 and after). */
const notPublicIpv4 = networks(
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
  // Looks public and is answered by the host of a virtual machine.
  '168.63.129.16/32',
)
/** Of IPv6 only 2000::/3 is given out; these parts of it lead elsewhere: tunnels, documentation, special uses. */
const globalIpv6 = networks('2000::/3')
const notPublicIpv6 = networks('2001::/23 2001:db8::/32 2002::/16 3fff::/20')
/** An IPv4 address in other clothes, which is judged as what it is: mapped, and translated by NAT64. */
const ipv4Inside = networks('::ffff:0:0/96 64:ff9b::/96')

/** `address` as a resolver or a URL spells it. */
export const mayBeCalled = (address: string, listed: readonly Network[]): boolean => {
  const given = ipBytes(address)
  if (given === null) return false
  const bytes = inOneOf(ipv4Inside, given) ? given.slice(12) : given
  if (inOneOf(listed, bytes) || inOneOf(listed, given)) return true
  return bytes.length === 4
    ? !inOneOf(notPublicIpv4, bytes)
    : inOneOf(globalIpv6, bytes) && !inOneOf(notPublicIpv6, bytes)
}

const loopback = networks('127.0.0.0/8 ::1/128')

export const isLoopback = (address: string): boolean => {
  const bytes = ipBytes(address)
  return bytes !== null && inOneOf(loopback, bytes)
}

function inOneOf(all: readonly Network[], bytes: Uint8Array): boolean {
  return all.some(
    (network) =>
      network.bytes.length === bytes.length &&
      network.bytes.every((byte, at) => ((byte ^ (bytes[at] ?? 0)) & maskAt(network, at)) === 0),
  )
}

/** The bits of the byte at this place that belong to the prefix. */
function maskAt({ bits }: Network, at: number): number {
  const here = Math.min(8, Math.max(0, bits - at * 8))
  return (0xff << (8 - here)) & 0xff
}

function networks(...texts: readonly string[]): readonly Network[] {
  return texts
    .flatMap((text) => text.split(' '))
    .map((text) => {
      const network = parseNetwork(text)
      if (network === null) throw new Error(`${text} is not a network`)
      return network
    })
}
