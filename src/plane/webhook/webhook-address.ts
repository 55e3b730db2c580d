// Which addresses a webhook may be sent to. The owner of its name, or of its DNS, must not reach what only this machine can: so an
// address is public, or an operator has listed its network.

import { inOneOf, networksOf, parseIp, type Network } from '#platform/ip-address.ts'

/** Every address that is not one of the Internet at large, as IANA keeps the lists (RFC 6890 and after). */
const notPublicIpv4 = networksOf(
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24',
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4',
  // Looks public and is answered by the host of a virtual machine.
  '168.63.129.16/32',
)
/** Of IPv6 only 2000::/3 is given out; these parts of it lead elsewhere: tunnels, documentation, special uses. */
const globalIpv6 = networksOf('2000::/3')
const notPublicIpv6 = networksOf('2001::/23 2001:db8::/32 2002::/16 3fff::/20')
/** An IPv4 address in other clothes, which is judged as what it is: mapped, and translated by NAT64. */
const ipv4Inside = networksOf('::ffff:0:0/96 64:ff9b::/96')

/** `address` as a resolver or a URL spells it. */
export const mayBeCalled = (address: string, listed: readonly Network[]): boolean => {
  const given = parseIp(address)
  if (given === null) return false
  const bytes = inOneOf(ipv4Inside, given) ? given.slice(12) : given
  if (inOneOf(listed, bytes) || inOneOf(listed, given)) return true
  return bytes.length === 4
    ? !inOneOf(notPublicIpv4, bytes)
    : inOneOf(globalIpv6, bytes) && !inOneOf(notPublicIpv6, bytes)
}

const loopback = networksOf('127.0.0.0/8 ::1/128')

export const isLoopback = (address: string): boolean => {
  const bytes = parseIp(address)
  return bytes !== null && inOneOf(loopback, bytes)
}
