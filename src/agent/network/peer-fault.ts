// What the plane says of the network ends up in commands and in a configuration made of lines: it is checked to be what it
// claims to be, address by address.

import { parseIp, parseNetwork } from '#platform/ip-address.ts'
import type { Peer, PlanePeers, WireguardConfig } from '#wire/network/peers.ts'

/** Null when a peer can be used as it is. */
export const faultOfPeer = ({ endpoint, allowed_ips: allowed }: Peer): string | null => {
  if (endpoint !== null && !isEndpoint(endpoint)) return 'an endpoint that is none'
  return allowed.length > 0 && allowed.every((network) => parseNetwork(network) !== null)
    ? null
    : 'a peer without addresses, or with malformed ones'
}

export const faultOfPeers = ({ add }: Pick<PlanePeers, 'add'>): string | null =>
  add.map(faultOfPeer).find((fault) => fault !== null) ?? null

export const faultOfWireguard = (config: WireguardConfig | null): string | null => {
  if (config === null) return null
  const good = parseIp(config.address)?.length === 16 && parseNetwork(config.network)?.bytes.length === 16
  return good ? null : 'a WireGuard address or network that is none'
}

const isEndpoint = (text: string): boolean => {
  const [, ipv6, ipv4, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text) ?? []
  const bytes = parseIp(ipv6 ?? ipv4 ?? '')
  return bytes?.length === (ipv6 === undefined ? 4 : 16) && Number(port) >= 1 && Number(port) <= 65_535
}
