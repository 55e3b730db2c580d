// The configuration of an interface as `wg syncconf` reads it. It holds the private key.

import type { Peer } from '#domain/network/peer-set.ts'

export type InterfaceFacts = {
  readonly privateKey: string
  readonly listenPort: number
  readonly peers: Iterable<Peer>
  /** No peer can connect to this node first, so it sends keepalives. */
  readonly keepAlive: boolean
}

/** Shorter than what most address translators forget a connection after. */
const keepAliveS = 25

export const interfaceText = ({ privateKey, listenPort, peers, keepAlive }: InterfaceFacts): string =>
  [
    '[Interface]',
    `PrivateKey = ${privateKey}`,
    `ListenPort = ${listenPort}`,
    ...[...peers].flatMap((peer) => [
      '',
      '[Peer]',
      `PublicKey = ${peer.publicKey}`,
      ...(peer.endpoint === null ? [] : [`Endpoint = ${peer.endpoint}`]),
      `AllowedIPs = ${peer.allowedIps.join(', ')}`,
      ...(keepAlive ? [`PersistentKeepalive = ${keepAliveS}`] : []),
    ]),
    '',
  ].join('\n')
