// The recovery listener: TLS 1.3 with its own root, no client certificate requested (it would prove nothing here), no resumption,
// and a few calls that each carry their own credential.

import { refuse } from '#domain/core/refusal.ts'
import type { ConnectionLimits } from '#platform/connections.ts'
import type { SharedAddress } from '#platform/http-server.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import { openTlsListener } from '#platform/tls-listener.ts'
import type { ServerIdentity } from '#plane/authority/authority.ts'
import { refusalText } from '#wire/core/refusal-response.ts'
import { httpApp, type MachineCalls } from './http-app.ts'
import type { Timers } from '#platform/timers.ts'

export type RecoveryListenerParts = {
  readonly calls: MachineCalls
  readonly identity: ServerIdentity
  readonly limits: ConnectionLimits
  readonly balancers: Balancers | null
}

export type RecoveryListener = {
  listen(at: SharedAddress): Promise<number>
  replaceIdentity(identity: ServerIdentity): void
  stop(withinMs: number): Promise<void>
}

const tlsOptions = ({ keyPem, chainPem }: ServerIdentity) => ({
  keyPem,
  chainPem,
  clientRoots: null,
  rejectUnauthorized: true,
})

export const openRecoveryListener = async (
  timers: Timers,
  { calls, identity: first, limits, balancers }: RecoveryListenerParts,
): Promise<RecoveryListener> => {
  // A caller is anonymous here until a handler has checked its credential.
  const authenticate = async (_request: unknown, source: string) => ({ kind: 'anonymous', source }) as const
  const app = httpApp({ ...calls, callers: 'machines', authenticate })
  await app.ready()
  const listener = openTlsListener(timers, {
    options: tlsOptions(first),
    // A call or two for each machine that comes back: the node listener, where it then stays, has the threads.
    threads: 0,
    handler: app.routing,
    onUpgrade: null,
    bounds: {
      ...limits,
      unreadable: (tooLarge) => refusalText(refuse(tooLarge ? 'TOO_LARGE' : 'REQUEST_INVALID')),
    },
    balancers,
    onHandshakeFailed: (why) => calls.log.debug({ why }, 'TLS handshake failed'),
  })
  return {
    listen: (at) => listener.listen(at),
    replaceIdentity: (identity) => listener.replaceIdentity(tlsOptions(identity)),
    async stop(withinMs) {
      await listener.stop(withinMs)
      await app.close()
    },
  }
}
