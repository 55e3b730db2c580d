// The HTTPS client for outside issuers, against real TLS servers that do what no issuer should.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as https from 'node:https'
import * as net from 'node:net'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import {
  type IssuerAnswer,
  type IssuerFaultCode,
  IssuerFault,
  type IssuerServer,
  mostBytesOfList,
  openIssuerClient,
} from '#plane/outside/issuer-client.ts'
import { systemTimers } from '#platform/timers.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import { localServerIdentity, startLocalTlsServer } from '../process/local-tls-server.ts'
import { selfSigned } from '../process/self-signed.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const never = new AbortController().signal
const ask = { method: 'POST', path: '/1.0/sign', json: { csr: 'request' } } as const

const clientOf = (t: TestContext, server: Pick<IssuerServer, 'address' | 'roots'> & Partial<IssuerServer>) => {
  const client = openIssuerClient(systemTimers, {
    identity: null,
    mostConnections: 4,
    limits: { connectMs: 20_000, answerMs: 20_000 },
    ...server,
  })
  cleanup(t, () => client.close())
  return client
}

/** A server that answers as `handler` does, and a client that trusts it. */
const pair = async (
  t: TestContext,
  handler: Handler,
  { options, ...more }: Partial<IssuerServer> & { options?: https.ServerOptions } = {},
) => {
  const { server, target } = await startLocalTlsServer(t, options)
  const seen = { requests: 0, connections: 0 }
  server.on('secureConnection', () => seen.connections++)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    seen.requests++
    handler(request, response)
  })
  return { client: clientOf(t, { address: target.url, roots: target.roots, ...more }), seen, target }
}

const sends =
  (body: string, type = 'application/json', status = 200): Handler =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': type }).end(body)

/** It has one, within seconds of ours. */
const withoutDate = ({ dateMs, ...answer }: IssuerAnswer): Omit<IssuerAnswer, 'dateMs'> => {
  assert.ok(dateMs !== null && Math.abs(dateMs - Date.now()) < 60_000, String(dateMs))
  return answer
}

const fails = async (asked: Promise<unknown>, code: IssuerFaultCode, isUndone: boolean, shape: RegExp) => {
  const error = await asked.then(
    () => assert.fail('it was answered'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof IssuerFault, String(error))
  assert.match(error.message, shape)
  assert.deepEqual([error.code, error.isUndone], [code, isUndone], error.message)
}

test('what is asked arrives as JSON, and any status is an answer', async (t) => {
  const bodies: string[] = []
  const { client, target } = await pair(t, (request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      bodies.push(
        `${request.method} ${request.url} ${request.headers.host} ${String(request.headers['x-token'])} ${body}`,
      )
      sends('{"message":"no such provisioner"}', 'application/json; charset=utf-8', 401)(request, response)
    })
  })
  const answer = await client.ask({ ...ask, headers: { 'x-token': 's.1' } }, never)
  assert.deepEqual(withoutDate(answer), { status: 401, json: { message: 'no such provisioner' } })
  assert.deepEqual(bodies, [`POST /1.0/sign ${new URL(target.url).host} s.1 {"csr":"request"}`])
})

test('an answer without a body is one, whatever its type', async (t) => {
  const { client } = await pair(t, (_request, response) => void response.writeHead(204).end())
  assert.deepEqual(withoutDate(await client.ask(ask, never)), { status: 204, json: null })
})

test('a redirect to another host is not followed', async (t) => {
  const other = await pair(t, sends('{}'))
  const { client } = await pair(
    t,
    (_request, response) => void response.writeHead(307, { location: `${other.target.url}/1.0/sign` }).end(),
  )
  await fails(client.ask(ask, never), 'redirect', false, /redirect \(307\)/)
  assert.deepEqual(other.seen, { requests: 0, connections: 0 })
})

test('HTML, and what only says that it is JSON, is no answer', async (t) => {
  const html = await pair(t, sends('<html>log in</html>', 'text/html'))
  await fails(html.client.ask(ask, never), 'not-json', false, /something else than JSON/)
  const untyped = await pair(t, (_request, response) => void response.end('{}'))
  await fails(untyped.client.ask(ask, never), 'not-json', false, /something else than JSON/)
  const broken = await pair(t, sends('{"crt":'))
  await fails(broken.client.ask(ask, never), 'not-json', false, /is none/)
})

test('silence ends with the limit, and so does an answer that comes byte by byte', async (t) => {
  const limits = { connectMs: 20_000, answerMs: 300 }
  const silent = await pair(t, () => {}, { limits })
  await fails(silent.client.ask(ask, never), 'timeout', false, /no answer within 0.3 s/)
  const slow = await pair(
    t,
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const drip = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(drip))
    },
    { limits },
  )
  await fails(slow.client.ask(ask, never), 'timeout', false, /no answer within 0.3 s/)
})

test('an answer of 10 MiB is cut off at its limit', async (t) => {
  let isSent: boolean | null = null
  const { client } = await pair(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.on('close', () => (isSent = response.writableFinished))
    response.end(Buffer.alloc(10 * 1024 * 1024, 32))
  })
  await fails(client.ask(ask, never), 'too-long', false, /more than 1048576 bytes/)
  assert.equal(
    await eventually('the connection to be closed', () => isSent !== null && { isSent }).then((it) => it.isSent),
    false,
  )
})

test('a list may have 10 MiB', async (t) => {
  const names = Array.from({ length: 200_000 }, (_, at) => `serial-${at}`)
  const { client } = await pair(t, sends(JSON.stringify(names)))
  await fails(client.ask(ask, never), 'too-long', false, /more than 1048576 bytes/)
  const { json } = await client.ask({ ...ask, mostBytes: mostBytesOfList }, never)
  assert.deepEqual(json, names)
})

test('a request whose connection dies after it was sent may have been carried out', async (t) => {
  const { client, seen } = await pair(t, (request) => void request.socket.destroy())
  await fails(client.ask(ask, never), 'cut', false, /was lost before the answer/)
  const half = await pair(t, (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
    response.write('{"crt":', () => request.socket.destroy())
  })
  await fails(half.client.ask(ask, never), 'cut', false, /was lost before the answer/)
  assert.deepEqual([seen.requests, half.seen.requests], [1, 1])
})

test('a server under another root, or with another name, is sent nothing', async (t) => {
  const { seen, target } = await pair(t, sends('{}'))
  const otherRoot = clientOf(t, { address: target.url, roots: [localServerIdentity().chainPem] })
  await fails(otherRoot.ask(ask, never), 'untrusted', true, /does not hang under a pinned root/)
  assert.equal(seen.requests, 0)

  const { keyPem, chainPem } = localServerIdentity()
  const elsewhere = https.createServer({ key: keyPem, cert: chainPem }, () => assert.fail('a request came'))
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.2', resolve))
  cleanup(t, () => void elsewhere.close())
  const address = `https://127.0.0.2:${(elsewhere.address() as net.AddressInfo).port}`
  const otherName = clientOf(t, { address, roots: [chainPem] })
  await fails(otherName.ask(ask, never), 'untrusted', true, /for another name/)
})

test('without pinned roots there is no client: the system would decide', (t) => {
  assert.throws(() => clientOf(t, { address: 'https://ca.example', roots: [] }), /roots of the system/)
  assert.throws(() => clientOf(t, { address: 'http://ca.example', roots: ['x'] }), /https:\/\/HOST:PORT/)
})

test('TLS 1.2 is spoken with, TLS 1.1 is not', async (t) => {
  const of = (version: tls.SecureVersion) => ({
    options: { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' },
  })
  const newer = await pair(t, sends('{}'), of('TLSv1.2'))
  assert.deepEqual(withoutDate(await newer.client.ask(ask, never)), { status: 200, json: {} })
  const older = await pair(t, sends('{}'), of('TLSv1.1'))
  await fails(older.client.ask(ask, never), 'unreachable', true, /no connection/)
  // The server does speak it.
  const { port } = new URL(older.target.url)
  const socket = tls.connect({
    port: Number(port),
    host: '127.0.0.1',
    ca: [...older.target.roots],
    minVersion: 'TLSv1.1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  })
  await once(socket, 'secureConnect')
  assert.equal(socket.getProtocol(), 'TLSv1.1')
  socket.destroy()
})

test('a port that is closed, and a server that never shakes hands, are sent nothing', async (t) => {
  const roots = [localServerIdentity().chainPem]
  const closed = clientOf(t, { address: `https://127.0.0.1:${await freePort()}`, roots })
  await fails(closed.ask(ask, never), 'unreachable', true, /ECONNREFUSED/)
  const mute = net.createServer((socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
  cleanup(t, () => void mute.close())
  const address = `https://127.0.0.1:${(mute.address() as net.AddressInfo).port}`
  const waiting = clientOf(t, { address, roots, limits: { connectMs: 300, answerMs: 20_000 } })
  await fails(waiting.ask(ask, never), 'timeout', true, /no connection within 0.3 s/)
})

test('connections are kept, and there are never more than were allowed', async (t) => {
  const { client, seen } = await pair(t, sends('{}'), { mostConnections: 2 })
  await Promise.all(Array.from({ length: 20 }, () => client.ask(ask, never)))
  for (let count = 0; count < 5; count++) await client.ask(ask, never)
  assert.deepEqual(seen, { requests: 25, connections: 2 })
})

test('what waits for a connection of others ends unsent, and a place is free again after every failure', async (t) => {
  let isSilent = true
  const { client, seen } = await pair(t, (request, response) => void (isSilent || sends('{}')(request, response)), {
    mostConnections: 1,
    limits: { connectMs: 2_000, answerMs: 20_000 },
  })
  const given = new AbortController()
  const first = fails(client.ask(ask, given.signal), 'stopped', false, /stopped/)
  await eventually('the first request to arrive', () => seen.requests === 1)
  await fails(client.ask(ask, never), 'timeout', true, /no connection/)
  isSilent = false
  given.abort()
  await first
  assert.deepEqual(withoutDate(await client.ask(ask, never)), { status: 200, json: {} })
  assert.equal(seen.requests, 2)
})

test('a caller that gives up is rid of its request, wherever that is', async (t) => {
  const { client, seen } = await pair(t, () => {}, { mostConnections: 1 })
  const [before, answering, waiting] = [new AbortController(), new AbortController(), new AbortController()]
  before.abort()
  await fails(client.ask(ask, before.signal), 'stopped', true, /stopped/)
  const first = fails(client.ask(ask, answering.signal), 'stopped', false, /stopped/)
  await eventually('the request to arrive', () => seen.requests === 1)
  const second = fails(client.ask(ask, waiting.signal), 'stopped', true, /stopped/)
  waiting.abort()
  await second
  answering.abort()
  await first
})

test('a client certificate is presented where there is one', async (t) => {
  const identity = selfSigned('muster')
  const { client } = await pair(
    t,
    (request, response) => {
      const { subject } = (request.socket as tls.TLSSocket).getPeerCertificate()
      sends(JSON.stringify({ cn: subject?.CN ?? null }))(request, response)
    },
    {
      options: { requestCert: true, rejectUnauthorized: true, ca: identity.chainPem },
      identity: { key: identity.keyPem, cert: identity.chainPem },
    },
  )
  assert.deepEqual(withoutDate(await client.ask(ask, never)), { status: 200, json: { cn: 'muster' } })
})

test('what cannot be sent over HTTP is refused, with nothing of it in the message', async (t) => {
  const { client, seen } = await pair(t, sends('{}'))
  const headers = { 'x-vault-token': 'hvs.secret\n' }
  await fails(client.ask({ ...ask, headers }, never), 'unreachable', true, /^(?!.*secret)/)
  assert.equal(seen.requests, 0)
})
