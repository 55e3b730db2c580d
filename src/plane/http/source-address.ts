// The one place that says where a request came from: the caller a load balancer names, else who is at the other end.

import { formatIp, parseIp, unmapped } from '#platform/ip-address.ts'
import { proxiedCaller } from '#platform/proxied-caller.ts'

/** A Unix socket has no address. An IPv4 address is spelled as one, whatever socket it came in by. */
export const sourceAddress = (socket: { readonly remoteAddress?: string | undefined }): string => {
  const text = proxiedCaller(socket) ?? socket.remoteAddress ?? 'local'
  const address = parseIp(text)
  if (address === null) return text
  const plain = unmapped(address)
  return plain === address ? text : formatIp(plain)
}
