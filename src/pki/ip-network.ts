// Networks of IP addresses: `10.0.0.0/8` between text and bits, and who is in one.

import { ipBytes } from './ip-address.ts'

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

/** Of one family only: an IPv4 address is in no IPv6 network, however it is written. */
export const inOneOf = (all: readonly Network[], address: Uint8Array): boolean =>
  all.some(
    (network) =>
      network.bytes.length === address.length &&
      network.bytes.every((byte, at) => ((byte ^ (address[at] ?? 0)) & maskAt(network, at)) === 0),
  )

/** The bits of the byte at this place that belong to the prefix. */
const maskAt = ({ bits }: Network, at: number): number => {
  const here = Math.min(8, Math.max(0, bits - at * 8))
  return (0xff << (8 - here)) & 0xff
}
