// A server that publishes a key set over TLS, as a cluster does.

import type { Cluster } from '../fakes/service-accounts.ts'
import { startLocalTlsServer } from './local-tls-server.ts'
import type { Scope } from './cleanup.ts'

export type KeyServer = {
  readonly url: string
  /** PEM. */
  readonly ca: string
  asked(): number
  /** What it answers from now on; null: the key set. */
  answer(status: number | null): void
}

export const startKeyServer = async (t: Scope, cluster: Cluster): Promise<KeyServer> => {
  const { target, server } = await startLocalTlsServer(t)
  let asked = 0
  let status: number | null = null
  server.on('request', (_request, response) => {
    asked += 1
    response.writeHead(status ?? 200, status === 302 ? { location: '/elsewhere' } : {})
    response.end(status === null ? cluster.jwks() : '')
  })
  const [ca = ''] = target.roots
  return { url: `${target.url}/openid/v1/jwks`, ca, asked: () => asked, answer: (next) => void (status = next) }
}
