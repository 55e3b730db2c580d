// The one place that says where a request came from. A load balancer's PROXY protocol will feed it.

/** A Unix socket has no address. */
export const sourceAddress = (socket: { readonly remoteAddress?: string | undefined }): string =>
  socket.remoteAddress === undefined ? 'local' : socket.remoteAddress.replace(/^::ffff:(?=\d+\.)/, '')
