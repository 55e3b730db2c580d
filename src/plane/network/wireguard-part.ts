// The place of one node in the WireGuard network: what it brings when it enrolls, what the store knows of that, and what it is
// answered.

import type { Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { addressCandidates, isFreeFor, isOfNetwork, wireguardPrefixOf } from '#domain/network/wireguard-address.ts'
import type { Profile } from '#domain/core/profile.ts'
import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import {
  checkUnderlay,
  nothingHeld,
  wireguardKeyProblem,
  type WireguardBrought,
  type WireguardFacts,
  type WireguardHeld,
} from '#domain/network/wireguard-part.ts'
import { sha256, sha256Hex } from '#platform/bytes.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { type WireguardRequest, peerOnWire, type OverlayConfig, type WireguardConfig } from '#wire/network/peers.ts'
import type { Peer } from '#domain/network/peer-set.ts'
import { formatNetwork } from '#platform/ip-address.ts'

/** Before anything is looked up: what is wrong with it uses up nothing. */
export const checkWireguard = (request: WireguardRequest): WireguardBrought | Refusal => {
  const { public_key: publicKey, underlay_endpoint: said } = request
  const problem = wireguardKeyProblem(publicKey)
  if (problem !== null) return refuseField('REQUEST_INVALID', 'wireguard.public_key', problem)
  const endpoint = said === null ? null : checkUnderlay(said)
  if (isRefusal(endpoint)) return endpoint
  return { publicKey, fingerprint: sha256Hex(Buffer.from(publicKey, 'base64')), endpoint }
}

export type WireguardAsked = {
  readonly brought: WireguardBrought | null
  readonly node: Row<Node> | null
  readonly nodeId: NodeId
  readonly profile: Profile
  readonly domain: DomainSettings
  readonly nowMs: number
}

export const readWireguard = async (
  store: Store,
  asked: WireguardAsked,
): Promise<{ readonly wireguard: WireguardFacts | null; readonly wireguardHeld: WireguardHeld }> => {
  const wireguardHeld = asked.node === null ? nothingHeld : await wireguardHeldBy(store, asked.node.value)
  const { brought } = asked
  if (brought === null || asked.profile.wireguard.mode === 'off') return { wireguard: null, wireguardHeld }
  const key = await store.get('wireguard-key', brought.publicKey)
  return { wireguard: { brought, key, address: await findAddress(store, asked) }, wireguardHeld }
}

const findAddress = async (
  store: Store,
  { node, nodeId, domain, nowMs }: WireguardAsked,
): Promise<WireguardFacts['address']> => {
  const prefix = wireguardPrefixOf(domain, sha256)
  const own = node?.value.wireguard?.address
  const asking = { id: nodeId, registeredAtMs: node?.value.registeredAtMs ?? null }
  const kept = own !== undefined && isOfNetwork(prefix, own) ? [own] : []
  for (const candidates of [kept, addressCandidates(prefix, nodeId, sha256)]) {
    for (const address of candidates) {
      const row = await store.get('overlay-address', address)
      if (isFreeFor(asking, row, nowMs)) return { address, row }
    }
  }
  return null
}

export const wireguardHeldBy = async (store: Pick<Store, 'get'>, { wireguard }: Node): Promise<WireguardHeld> =>
  wireguard === null
    ? nothingHeld
    : {
        key: await store.get('wireguard-key', wireguard.publicKey),
        address: await store.get('overlay-address', wireguard.address),
      }

/** The WireGuard configuration of a node; null: it takes no part. */
export const wireguardConfigOf = (
  { wireguard }: Pick<Node, 'wireguard'>,
  { wireguard: policy }: Pick<Profile, 'wireguard'>,
  domain: DomainSettings,
): WireguardConfig | null =>
  wireguard === null || policy.mode === 'off'
    ? null
    : {
        address: wireguard.address,
        network: formatNetwork(wireguardPrefixOf(domain, sha256)),
        listen_port: policy.listenPort,
        mtu: policy.mtu,
      }

/** More of them come over the channel. */
const mostPeerBytes = 64 * 1024

/** The same with an enrollment, by the names of document 002 and with the peers it starts with. */
export const overlayConfigOf = (config: WireguardConfig, peers: readonly Peer[]): OverlayConfig => {
  const { address, network, listen_port, mtu } = config
  const named: OverlayConfig['peers'] = []
  let room = mostPeerBytes
  for (const peer of peers) {
    const one = peerOnWire(peer)
    room -= JSON.stringify(one).length + 1
    if (room < 0) break
    named.push(one)
  }
  const peers_complete = named.length === peers.length
  return { host_overlay_ipv6: address, network, listen_port, mtu, peers: named, peers_complete }
}
