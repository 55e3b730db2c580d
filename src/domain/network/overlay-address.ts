// Which address a node gets in the WireGuard network of its domain. A node is offered addresses in an order of its
// own, made from its name: it comes back to the one it had, and two that are enrolled at once hardly ever meet.

import type { Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { formatIpv6, isWithin, parseIpv6, parsePrefix, type Prefix } from '#domain/core/ip-address.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Digest } from './peer-set.ts'
import { addressRestMs, type OverlayAddress } from '#domain/core/wireguard.ts'

const bytesOf = (bytes: Uint8Array): bigint => bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n)

/** What the domain says, else a unique local prefix (RFC 4193) made from its name. */
export const overlayPrefixOf = ({ name, overlayPrefix }: DomainSettings, digest: Digest): Prefix => {
  const chosen = overlayPrefix === null ? null : parsePrefix(overlayPrefix)
  if (chosen !== null) return chosen
  const globalId = bytesOf(digest(`muster wireguard network of ${name}`).subarray(0, 5))
  return { network: (0xfdn << 120n) | (globalId << 80n), bits: 64 }
}

/** A network this small is looked through. */
const smallBits = 12n
/** In a larger one so many that are all taken mean that nearly everything is. */
const mostTried = 256

/** Canonical texts, of which the first that is free is the node's. Never the first address: routers answer to it (RFC 4291). */
export function* addressCandidates(prefix: Prefix, node: NodeId, digest: Digest): Generator<string> {
  const hostBits = BigInt(128 - prefix.bits)
  const size = 1n << hostBits
  const hashed = (attempt: number): bigint => bytesOf(digest(`${node} ${attempt}`).subarray(0, 16)) % size
  if (hostBits <= smallBits) {
    const from = hashed(0)
    for (let step = 0n; step < size; step++) {
      const host = (from + step) % size
      if (host !== 0n) yield formatIpv6(prefix.network | host)
    }
    return
  }
  for (let attempt = 0; attempt < mostTried; attempt++) {
    const host = hashed(attempt)
    if (host !== 0n) yield formatIpv6(prefix.network | host)
  }
}

/** Whether an address the node has is one of the network: a domain may have been given another prefix since. */
export const isOfNetwork = (prefix: Prefix, address: string): boolean => {
  const parsed = parseIpv6(address)
  return parsed !== null && isWithin(parsed, prefix)
}

/**
 * One that was given up rests before another machine gets it, also a new one of the same name: a peer that was away meanwhile
 * may still send there what is for the one before. `registeredAtMs`: of whoever asks; null: about to be registered.
 */
export const isFreeFor = (
  { id, registeredAtMs }: { readonly id: NodeId; readonly registeredAtMs: number | null },
  row: Row<OverlayAddress> | null,
  nowMs: number,
): boolean => {
  if (row === null) return true
  const { node, releasedAtMs } = row.value
  if (releasedAtMs === null) return node === id
  const left = node === id && registeredAtMs !== null && releasedAtMs > registeredAtMs
  return left || nowMs >= releasedAtMs + addressRestMs
}
