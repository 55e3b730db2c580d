// What an enrollment says about WireGuard, and what becomes of the key and the address a node had.

import { readOf, type Row, type Write, mergeParts, type ChangePart } from '#domain/core/change.ts'
import { formatIp, inOneOf, networksOf, parseIp, parseIpv6 } from '#platform/ip-address.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { NodeWireguard, WireguardAddress, UnderlayEndpoint, WireguardKey } from '#domain/core/wireguard.ts'

export type WireguardBrought = {
  readonly publicKey: string
  /** SHA-256 of its bytes, hex. */
  readonly fingerprint: string
  readonly endpoint: UnderlayEndpoint | null
}

export type WireguardFacts = {
  readonly brought: WireguardBrought
  /** Who has this key, or had it. */
  readonly key: Row<WireguardKey> | null
  /** One that is free for the node; null: there is none. */
  readonly address: { readonly address: string; readonly row: Row<WireguardAddress> | null } | null
}

/** The rows of what a node has now. */
export type WireguardHeld = { readonly key: Row<WireguardKey> | null; readonly address: Row<WireguardAddress> | null }

export const nothingHeld: WireguardHeld = { key: null, address: null }

/** Why the node is not let in; the code says whether that uses up its token. */
export const wireguardBarred = (profile: Profile, node: NodeId, facts: WireguardFacts | null): Refusal | null => {
  const { mode } = profile.wireguard
  if (mode === 'off') return null
  if (facts === null) {
    return mode === 'required' ? refuse('WG_KEY_REQUIRED', `profile ${profile.name} asks for one`) : null
  }
  if (facts.key !== null && !mayUse(facts.key.value, node)) {
    return refuse('WG_KEY_IN_USE', `SHA256:${facts.brought.fingerprint}`)
  }
  return facts.address === null ? refuse('ADDRESS_POOL_EXHAUSTED') : null
}

/** A node may return to a key that it has replaced; no node may use the key of a revoked node. */
const mayUse = (key: WireguardKey, node: NodeId): boolean =>
  key.node === node && (key.endedAtMs === null || key.replaced === true)

/** What an admission makes of it. */
export const wireguardJoined = (
  profile: Profile,
  node: NodeId,
  facts: WireguardFacts | null,
  held: WireguardHeld,
  nowMs: number,
): { readonly wireguard: NodeWireguard | null; readonly part: ChangePart } => {
  if (profile.wireguard.mode === 'off' || facts === null || facts.address === null) {
    return { wireguard: null, part: wireguardGivenUp(held, 'replaced', nowMs) }
  }
  const { brought, key, address } = facts
  const wireguard: NodeWireguard = {
    publicKey: brought.publicKey,
    address: address.address,
    endpoint: brought.endpoint,
  }
  const since = { node, sinceMs: nowMs }
  const taken: ChangePart = {
    reads: [readOf('wireguard-key', brought.publicKey, key), readOf('overlay-address', address.address, address.row)],
    writes: [
      { put: 'wireguard-key', value: { publicKey: brought.publicKey, ...since, endedAtMs: null } },
      { put: 'overlay-address', value: { address: address.address, ...since, releasedAtMs: null } },
    ],
  }
  const others: WireguardHeld = {
    key: held.key?.value.publicKey === brought.publicKey ? null : held.key,
    address: held.address?.value.address === address.address ? null : held.address,
  }
  return { wireguard, part: mergeParts([taken, wireguardGivenUp(others, 'replaced', nowMs)]) }
}

/** Ends the key and releases the address. `withdrawn`: the node was withdrawn, and no node may use that key again. */
export const wireguardGivenUp = (
  { key, address }: WireguardHeld,
  why: 'replaced' | 'withdrawn',
  nowMs: number,
): ChangePart => {
  const writes: Write[] = []
  if (key !== null) {
    const { replaced: _before, ...rest } = key.value
    const ended: WireguardKey = { ...rest, endedAtMs: nowMs, ...(why === 'replaced' && { replaced: true }) }
    writes.push({ put: 'wireguard-key', value: ended })
  }
  if (address !== null) writes.push({ put: 'overlay-address', value: { ...address.value, releasedAtMs: nowMs } })
  return {
    reads: [
      ...(key === null ? [] : [readOf('wireguard-key', key.value.publicKey, key)]),
      ...(address === null ? [] : [readOf('overlay-address', address.value.address, address)]),
    ],
    writes,
  }
}

/** As document 002 writes it; null: it has none that others could call. */
export const underlayText = (endpoint: UnderlayEndpoint | null): string | null => {
  const host = endpoint === null ? null : (endpoint.ipv6 ?? endpoint.ipv4)
  return endpoint === null || host === null ? null : `${host}:${endpoint.port}`
}

/** Addresses in canonical text, or what is wrong with them. The plane judges them by their looks only (ruling 12). */
export const checkUnderlay = ({ ipv6, ipv4, port }: UnderlayEndpoint): UnderlayEndpoint | Refusal => {
  const address = ipv6 === null ? null : parseIpv6(ipv6)
  if (ipv6 !== null && (address === null || inOneOf(unreachable, address))) {
    return unreachableAt('underlay_endpoint.ipv6')
  }
  const quad = ipv4 === null || ipv4.includes(':') ? null : parseIp(ipv4)
  if (ipv4 !== null && (quad === null || inOneOf(unreachable, quad))) {
    return unreachableAt('underlay_endpoint.ipv4')
  }
  return { ipv6: address === null ? null : formatIp(address), ipv4, port }
}

const unreachableAt = (field: string): Refusal =>
  refuseField('REQUEST_INVALID', `wireguard.${field}`, `${field} is no address that another machine could reach`)

/** Unspecified, loopback, IPv4 in disguise, link-local (which needs a zone) and multicast. */
const unreachable = networksOf(
  '::/128 ::1/128 ::ffff:0:0/96 fe80::/10 ff00::/8',
  '0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/3',
)

// Whether 32 bytes are a public key that WireGuard can keep a secret with. Two texts for one key would make two nodes of one
// key, and with a point of small order all peers would share the same secret.

const field = (1n << 255n) - 19n

/** u-coordinates of the points of small order (RFC 7748 §6.1, Bernstein's list), in their one canonical form. */
const smallOrder: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
  field - 1n,
])

/** What is wrong with it; null: nothing. Base64 of 32 bytes, as the schema has it. */
export const wireguardKeyProblem = (publicKey: string): string | null => {
  const bytes = [...atob(publicKey)].map((character) => character.charCodeAt(0))
  if (bytes.length !== 32) return 'a WireGuard key has 32 bytes'
  const point = bytes.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n)
  if (point >= field) return 'the WireGuard key is not in its canonical form'
  return smallOrder.has(point) ? 'the WireGuard key is of small order, and keeps nothing secret' : null
}
