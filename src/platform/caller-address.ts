// The one place that says where a connection came from: the caller a load balancer names, else who is at the other end.

import type { Socket } from 'node:net'
import { formatIp, parseIp, unmapped } from './ip-address.ts'

/** Kept with the socket. */
const callerAddress: unique symbol = Symbol('caller')
type Marked = { readonly [callerAddress]?: string }

export const setProxiedCaller = (socket: object, caller: string): void => {
  Object.assign(socket, { [callerAddress]: caller } satisfies Marked)
}

/** The address a balancer gave for this connection; null: none did. */
export const proxiedCaller = (socket: object): string | null => (socket as Marked)[callerAddress] ?? null

/** A Unix socket has no address. An IPv4 address is spelled as one, whatever socket it came in by. */
export const sourceAddress = (socket: { readonly remoteAddress?: string | undefined }): string => {
  const text = proxiedCaller(socket) ?? socket.remoteAddress ?? 'local'
  if (!text.includes(':')) return text
  const address = parseIp(text)
  if (address === null) return text
  const plain = unmapped(address)
  return plain === address ? text : formatIp(plain)
}

/** Both ends of a TCP connection: TLS wraps its socket in another, which has the same ends. */
export const endsOf = ({
  remoteAddress,
  remotePort,
  localAddress,
  localPort,
}: Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
