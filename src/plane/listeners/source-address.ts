// Where a request came from. The one place that says so: a load balancer's PROXY protocol will feed it here.

import type { HttpRequest } from '#platform/http-server.ts'

/** An IP address, IPv4 ones in their own form; `local` for the Unix socket. */
export const sourceAddress = (request: Pick<HttpRequest, 'socket'>): string => {
  const address = request.socket.remoteAddress
  if (address === undefined) return 'local'
  return address.startsWith('::ffff:') ? address.slice(7) : address
}
