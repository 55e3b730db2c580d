// Which addresses are load balancers, whose word on who is calling is taken.

import { ipBytes } from '#pki/ip-address.ts'
import { inOneOf, parseNetwork, type Network } from '#pki/ip-network.ts'

/** No network of load balancers is larger than 10.0.0.0/8. */
const fewestBits = { v4: 8, v6: 16 }

/** A text says what is wrong. */
export const proxyFrom = (given: readonly string[]): readonly Network[] | string => {
  const networks: Network[] = []
  for (const text of given) {
    const network = networkOf(text.trim())
    if (network === null) return `--proxy-from takes an address or a network such as 10.1.2.0/24, not ${text}`
    // Whoever may say who they are is anybody they like, and two halves are everybody, too.
    if (network.bits < (network.bytes.length === 4 ? fewestBits.v4 : fewestBits.v6))
      return `--proxy-from takes the addresses of load balancers, and ${text} is nearly everybody`
    networks.push(network)
  }
  return networks
}

/** `address` as a socket spells it: an IPv4 caller of an IPv6 socket is written as ::ffff:a.b.c.d. */
export const isListed = (networks: readonly Network[], address: string): boolean => {
  // A link-local address names its interface.
  const bytes = ipBytes(address.replace(/%.*$/, ''))
  return bytes !== null && inOneOf(networks, isMapped(bytes) ? bytes.subarray(12) : bytes)
}

const networkOf = (text: string): Network | null => {
  const network = parseNetwork(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`)
  if (network === null || !isMapped(network.bytes) || network.bits < 96) return network
  return { bytes: network.bytes.subarray(12), bits: network.bits - 96 }
}

const mapped = { bytes: Uint8Array.from([...Array<number>(10).fill(0), 0xff, 0xff, 0, 0, 0, 0]), bits: 96 }
const isMapped = (bytes: Uint8Array): boolean => inOneOf([mapped], bytes)
