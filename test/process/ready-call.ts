// A call whose connection is open before it is made: many can be made in one moment, so that they race in the plane and
// not in their handshakes.

import * as http from 'node:http'
import * as tls from 'node:tls'
import { within } from './eventually.ts'
import { tlsOptions, type Identity, type NodeTarget } from './node-call.ts'
import { readReply, type Reply } from './operator-call.ts'

export type ReadyCall = {
  /** Of this side: how the plane's system calls name the connection. */
  readonly localPort: number
  /** Once. Rejects where the connection fails; a refusal is a reply. */
  send(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply>
}

const connectWithinMs = 30_000
const answerWithinMs = 60_000

export const readyCall = async (target: NodeTarget, identity: Identity | null): Promise<ReadyCall> => {
  const socket = tls.connect(tlsOptions(target, identity))
  const connected = new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.once('secureConnect', resolve)
  })
  await within(`a connection to ${target.url}`, connectWithinMs, connected)
  // Should the plane die before the call is made, the call says so.
  socket.on('error', () => {})
  return {
    localPort: socket.localPort ?? 0,
    send: (method, path, body) =>
      within(
        `an answer to ${method} ${path}`,
        answerWithinMs,
        new Promise<Reply>((resolve, reject) => {
          const text = body === undefined ? null : JSON.stringify(body)
          const request = http.request({
            createConnection: () => socket,
            method,
            path,
            headers: {
              host: new URL(target.url).host,
              ...(text === null
                ? {}
                : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
            },
          })
          request.on('error', reject)
          request.on('response', (response) => void readReply(response).then(resolve, reject))
          request.end(text ?? undefined)
        }),
      ).finally(() => socket.destroy()),
  }
}
