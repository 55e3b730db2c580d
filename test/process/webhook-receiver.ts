// A receiver of alerts that a test lets misbehave: real HTTPS, a certificate of its own.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { webhookSignature } from '#plane/webhook/webhook-message.ts'
import type { Scope } from './cleanup.ts'
import { startLocalTlsServer } from './local-tls-server.ts'
import type { Json } from './operator-call.ts'

export type Received = { readonly delivery: string; readonly body: Json; readonly path: string }

export type WebhookReceiver = {
  readonly url: string
  readonly port: number
  /** PEM: what a client has to trust. */
  readonly root: string
  /** What came with a valid signature, in the order it came. */
  readonly received: Received[]
  /** What was answered with a status of success. */
  readonly taken: Received[]
  /** Calls that came without a valid signature. */
  forged(): number
  connectionsAtOnce(): number
  /** How the next calls are answered. */
  answer: (received: Received, response: ServerResponse) => void
}

export const takes = (_received: Received, response: ServerResponse): void => void response.writeHead(204).end()
export const failsWith =
  (status: number, headers: Record<string, string> = {}) =>
  (_received: Received, response: ServerResponse): void =>
    void response.writeHead(status, headers).end('a word that nobody reads')

export const startReceiver = async (t: Scope, secret: string): Promise<WebhookReceiver> => {
  const { port, target, server } = await startLocalTlsServer(t)
  let forged = 0
  let open = 0
  let mostOpen = 0
  const receiver: WebhookReceiver = {
    url: `https://localhost:${port}/hook?a=b`,
    port,
    root: target.roots[0] ?? '',
    received: [],
    taken: [],
    forged: () => forged,
    connectionsAtOnce: () => mostOpen,
    answer: takes,
  }
  server.on('secureConnection', (socket) => {
    mostOpen = Math.max(mostOpen, ++open)
    socket.on('close', () => open--)
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    void textOf(request).then((text) => {
      const [, seconds = ''] = /^t=(\d+),v1=[0-9a-f]{64}$/.exec(String(request.headers['muster-signature'])) ?? []
      if (webhookSignature(secret, Number(seconds), text) !== request.headers['muster-signature']) forged++
      const received = {
        delivery: String(request.headers['muster-delivery']),
        body: JSON.parse(text),
        path: request.url ?? '',
      }
      receiver.received.push(received)
      response.on('finish', () => {
        if (response.statusCode < 300) receiver.taken.push(received)
      })
      receiver.answer(received, response)
    })
  })
  return receiver
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
