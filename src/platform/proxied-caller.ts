// Who a load balancer says is at the other end of a connection, kept with its socket.

const callerAddress: unique symbol = Symbol('caller')
type Marked = { readonly [callerAddress]?: string }

export const setProxiedCaller = (socket: object, caller: string): void => {
  Object.assign(socket, { [callerAddress]: caller } satisfies Marked)
}

/** The address a balancer gave for this connection; null: none did. */
export const proxiedCaller = (socket: object): string | null => (socket as Marked)[callerAddress] ?? null
