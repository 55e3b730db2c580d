// One TLS connection that the test looks at from close by: which sessions it was given, whether one was taken up again,
// and as many requests on it as the test likes.

import * as http from 'node:http'
import * as tls from 'node:tls'
import { channelProtocol } from '#wire/channel/channel.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { within } from './eventually.ts'
import { tlsOptions, type Identity, type NodeTarget } from './node-call.ts'
import { readReply, type Reply } from './operator-call.ts'

export type TlsConnection = {
  /** The server took up the session that was offered, and asked for no certificate again. */
  readonly reused: boolean
  readonly protocol: string | null
  /** Of the certificate the server presented; on a resumed connection it presents none. */
  readonly serverSha256: string | null
  /** Whatever could be offered next time: tickets received so far, and the session as the client knows it. */
  sessions(): readonly Buffer[]
  /** One request after the other. */
  call(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply>
  /** What is answered to a request to open the channel; rejects where it is opened. */
  upgrade(path: string): Promise<Reply>
  ended(): boolean
  destroy(): void
}

const openWithinMs = 15_000

/** Rejects when the handshake fails, or the server is not the plane. */
export const openTlsConnection = async (
  t: Scope,
  target: NodeTarget,
  identity: Identity | null,
  options: tls.ConnectionOptions = {},
): Promise<TlsConnection> => {
  const socket = tls.connect({ ...tlsOptions(target, identity), ...options })
  cleanup(t, () => void socket.destroy())
  const tickets: Buffer[] = []
  socket.on('session', (session: Buffer) => tickets.push(session))
  await within(
    'a TLS handshake',
    openWithinMs,
    new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve)
      socket.once('error', reject)
      socket.once('close', () => reject(new Error('closed during the handshake')))
    }),
  )
  socket.on('error', () => {})
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  agent.createConnection = () => socket
  cleanup(t, () => agent.destroy())
  const known = socket.getSession()
  return {
    reused: socket.isSessionReused(),
    protocol: socket.getProtocol(),
    serverSha256: socket.getPeerX509Certificate()?.fingerprint256 ?? null,
    sessions: () => (known === undefined ? tickets : [...tickets, known]),
    call: (method, path, body) => callOn(agent, target, {}, method, path, body),
    upgrade: (path) => callOn(agent, target, upgradeHeaders, 'GET', path),
    ended: () => socket.destroyed,
    destroy: () => void socket.destroy(),
  }
}

const upgradeHeaders = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16).toString('base64'),
  'sec-websocket-protocol': channelProtocol,
}

const callOn = (
  agent: http.Agent,
  target: NodeTarget,
  headers: http.OutgoingHttpHeaders,
  method: string,
  path: string,
  body?: object,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? null : JSON.stringify(body)
    const request = http.request({
      agent,
      method,
      path,
      timeout: openWithinMs,
      headers: {
        host: new URL(target.url).host,
        ...headers,
        ...(text === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    })
    request.on('timeout', () => request.destroy(new Error(`${method} ${path}: no answer`)))
    request.on('error', reject)
    request.on('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new Error(`${path} was opened`))
    })
    request.on('response', (response) => resolve(readReply(response)))
    request.end(text ?? undefined)
  })
