// The addresses of load balancers, whose PROXY header is believed.

import { inOneOf, parseIp, parseNetwork, unmapped, unmappedNetwork, type Network } from '#platform/ip-address.ts'

/** No network of load balancers is larger than 10.0.0.0/8. */
const fewestBits = { v4: 8, v6: 16 }

/** A text says what is wrong, after the name of the setting. */
export const balancerNetwork = (text: string): Network | string => {
  const network = networkOf(text.trim())
  if (network === null) return `takes an address or a network such as 10.1.2.0/24, not ${text}`
  // A sender of the header can name any source, so all addresses are refused, also as two halves.
  if (network.bits < (network.bytes.length === 4 ? fewestBits.v4 : fewestBits.v6))
    return `takes the addresses of load balancers, and ${text} is nearly everybody`
  return network
}

/** `address` as a socket spells it: an IPv4 caller of an IPv6 socket is written as ::ffff:a.b.c.d. */
export const isBalancer = (networks: readonly Network[], address: string): boolean => {
  // A link-local address names its interface.
  const bytes = parseIp(address.replace(/%.*$/, ''))
  return bytes !== null && inOneOf(networks, unmapped(bytes))
}

const networkOf = (text: string): Network | null => {
  const network = parseNetwork(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`)
  return network === null ? null : unmappedNetwork(network)
}
