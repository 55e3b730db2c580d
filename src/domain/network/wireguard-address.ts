// Which address a node gets in the WireGuard network of its domain. A node is offered addresses in an order of its
// own, made from its name: it comes back to the one it had, and two that are enrolled at once hardly ever meet.

import type { Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import {
  formatIp,
  inOneOf,
  ipNumber,
  ipv6OfNumber,
  parseIpv6,
  parseNetwork,
  type Network,
} from '#platform/ip-address.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Digest } from './peer-set.ts'
import { addressRestMs, type WireguardAddress } from '#domain/core/wireguard.ts'

/** What the domain says, else a unique local prefix (RFC 4193) made from its name. */
export const wireguardPrefixOf = ({ name, overlayPrefix }: DomainSettings, digest: Digest): Network => {
  const chosen = overlayPrefix === null ? null : parseNetwork(overlayPrefix)
  if (chosen !== null) return chosen
  const globalId = digest(`muster wireguard network of ${name}`).subarray(0, 5)
  return { bytes: Uint8Array.from([0xfd, ...globalId, ...Array<number>(10).fill(0)]), bits: 64 }
}

/** A network this small is looked through. */
const smallBits = 12n
/** In a larger network this number of taken addresses means that nearly all are taken. */
const mostTried = 256

/** Canonical texts, of which the first that is free is the node's. Never the first address: routers answer to it (RFC 4291). */
export function* addressCandidates(network: Network, node: NodeId, digest: Digest): Generator<string> {
  const base = ipNumber(network.bytes)
  const hostBits = BigInt(128 - network.bits)
  const size = 1n << hostBits
  const hashed = (attempt: number): bigint => ipNumber(digest(`${node} ${attempt}`).subarray(0, 16)) % size
  if (hostBits <= smallBits) {
    const from = hashed(0)
    for (let step = 0n; step < size; step++) {
      const host = (from + step) % size
      if (host !== 0n) yield formatIp(ipv6OfNumber(base | host))
    }
    return
  }
  for (let attempt = 0; attempt < mostTried; attempt++) {
    const host = hashed(attempt)
    if (host !== 0n) yield formatIp(ipv6OfNumber(base | host))
  }
}

/** Whether an address the node has is one of the network: a domain may have been given another prefix since. */
export const isOfNetwork = (network: Network, address: string): boolean => {
  const parsed = parseIpv6(address)
  return parsed !== null && inOneOf([network], parsed)
}

/**
 * A released address rests before another machine gets it, also a new one of the same name: a peer that was away may still send
 * there what is for the previous node. `registeredAtMs`: of the asking node; null: about to be registered.
 */
export const isFreeFor = (
  { id, registeredAtMs }: { readonly id: NodeId; readonly registeredAtMs: number | null },
  row: Row<WireguardAddress> | null,
  nowMs: number,
): boolean => {
  if (row === null) return true
  const { node, releasedAtMs } = row.value
  if (releasedAtMs === null) return node === id
  const left = node === id && registeredAtMs !== null && releasedAtMs > registeredAtMs
  return left || nowMs >= releasedAtMs + addressRestMs
}
