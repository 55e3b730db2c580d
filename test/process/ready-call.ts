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
  /** False: the plane has cut it, as it does with connections that ask nothing for long. */
  isOpen(): boolean
  /** Once. Rejects where the connection fails; a refusal is a reply. */
  send(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply>
  /** The same in two steps: `sent` when the request is with the system, whatever the plane is doing. */
  start(method: 'GET' | 'POST', path: string, body?: object): Started
}

export type Started = { readonly sent: Promise<void>; readonly reply: Promise<Reply> }

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
  const start: ReadyCall['start'] = (method, path, body) => {
    const text = body === undefined ? null : JSON.stringify(body)
    const request = http.request({
      createConnection: () => socket,
      method,
      path,
      headers: {
        host: new URL(target.url).host,
        ...(text === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    })
    const answered = new Promise<Reply>((resolve, reject) => {
      request.on('error', reject)
      request.on('response', (response) => void readReply(response).then(resolve, reject))
    })
    const sent = new Promise<void>((resolve) => request.on('finish', resolve))
    request.end(text ?? undefined)
    const reply = within(`an answer to ${method} ${path}`, answerWithinMs, answered)
    return { sent, reply: reply.finally(() => socket.destroy()) }
  }
  return {
    localPort: socket.localPort ?? 0,
    isOpen: () => socket.readyState === 'open',
    start,
    send: (...call) => start(...call).reply,
  }
}
