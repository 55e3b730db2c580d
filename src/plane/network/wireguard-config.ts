// What a node is told of its own place in the WireGuard network.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import { overlayPrefixOf } from '#domain/network/overlay-address.ts'
import type { Peer } from '#domain/network/peer-set.ts'
import type { Profile } from '#domain/core/profile.ts'
import { sha256 } from '#platform/bytes.ts'
import { formatNetwork } from '#platform/ip-address.ts'
import { peerOnWire, type OverlayConfig, type WireguardConfig } from '#wire/network/peers.ts'

/** Null: it takes no part. */
export const wireguardConfigOf = (
  { wireguard }: Pick<Node, 'wireguard'>,
  { wireguard: policy }: Pick<Profile, 'wireguard'>,
  domain: DomainSettings,
): WireguardConfig | null =>
  wireguard === null || policy.mode === 'off'
    ? null
    : {
        address: wireguard.address,
        network: formatNetwork(overlayPrefixOf(domain, sha256)),
        listen_port: policy.listenPort,
        mtu: policy.mtu,
      }

/** More of them come over the channel. */
const mostPeerBytes = 64 * 1024

/** The same with an enrollment, by the names of seed 002 and with the peers it starts with. */
export const overlayConfigOf = (config: WireguardConfig, peers: readonly Peer[]): OverlayConfig => {
  const { address, network, listen_port, mtu } = config
  const told: OverlayConfig['peers'] = []
  let room = mostPeerBytes
  for (const peer of peers) {
    const one = peerOnWire(peer)
    room -= JSON.stringify(one).length + 1
    if (room < 0) break
    told.push(one)
  }
  const peers_complete = told.length === peers.length
  return { host_overlay_ipv6: address, network, listen_port, mtu, peers: told, peers_complete }
}
