// A1, A2: what one peer may hold at an HTTP server, without TLS and with it. The servers are real and so are the sockets;
// only the time in which a peer has to read is the test's own.

import assert from 'node:assert/strict'
import * as http from 'node:http'
import * as net from 'node:net'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import { boundServer } from '#platform/bounded-server.ts'
import { provenConnection, type ConnectionLimits } from '#platform/connections.ts'
import type { HttpRequest, HttpResponse, HttpServer } from '#platform/http-server.ts'
import { readProxyHeaders } from '#platform/proxied-server.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { proxyHeader } from '../process/balancer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { startLocalTlsServer } from '../process/local-tls-server.ts'

type Handler = (request: HttpRequest, response: HttpResponse) => void
type Options = Partial<Pick<ConnectionLimits, 'connections' | 'perSource' | 'perCaller'>>

const start = async (t: TestContext, kind: 'plain' | 'tls', handler: Handler, options: Options = {}) => {
  const timers = manualTimers(manualClock(0))
  const cuts: string[] = []
  const local = kind === 'tls' ? await startLocalTlsServer(t) : null
  const server: HttpServer = local === null ? http.createServer() : local.server
  server.on('request', handler)
  const limits = { connections: 64, perSource: null, perCaller: null, ...options }
  boundServer(server, { ...limits, timers, onCut: (reason) => void cuts.push(reason), unreadable: () => '' })
  if (local === null) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanup(t, async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
  }
  const { port } = server.address() as net.AddressInfo
  const tcp = (from = '127.0.0.1'): net.Socket => {
    const socket = net.connect({ host: '127.0.0.1', port, localAddress: from })
    cleanup(t, () => void socket.destroy())
    return socket.on('error', () => {})
  }
  const connect = async (from?: string): Promise<net.Socket> => {
    const bare = tcp(from)
    if (local === null) return bare
    const socket = tls.connect({ socket: bare, ca: [...local.target.roots], servername: 'localhost' })
    socket.on('error', () => {})
    await within('a handshake', 5000, new Promise((resolve) => socket.once('secureConnect', resolve)))
    return socket
  }
  const count = (): Promise<number> =>
    new Promise((resolve, reject) => server.getConnections((error, now) => (error ? reject(error) : resolve(now))))
  return { server, timers, cuts, tcp, connect, count }
}

const get = (path = '/'): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const collected = (socket: net.Socket): (() => string) => {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  return () => text
}
const large = Buffer.alloc(8 * 1024 * 1024, 'x')

for (const kind of ['plain', 'tls'] as const) {
  test(`A1: ${kind}: pipelined requests are handled one at a time and answered in order`, async (t) => {
    let now = 0
    let most = 0
    const { connect, cuts } = await start(t, kind, (request, response) => {
      most = Math.max(most, ++now)
      setImmediate(() => {
        now -= 1
        response.end(`<${request.url}>`)
      })
    })
    const socket = await connect()
    const text = collected(socket)
    socket.write(Array.from({ length: 10 }, (_, at) => get(`/${at}`)).join(''))
    await eventually('ten answers', () => text().includes('</9>'))
    assert.equal(most, 1)
    assert.deepEqual(
      [...text().matchAll(/<\/(\d)>/g)].map(([, at]) => Number(at)),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    )
    assert.deepEqual(cuts, [])
  })

  test(`A1: ${kind}: a peer that sends 1500 requests at once is cut off, and at most one was handled`, async (t) => {
    let handled = 0
    const { connect, cuts, count } = await start(t, kind, (_request, response) => {
      handled += 1
      setTimeout(() => response.end('late'), 200)
    })
    const socket = await connect()
    socket.write(get().repeat(1500))
    await eventually('it to be cut off', () => cuts.length > 0)
    await eventually('the connection to be gone', async () => (await count()) === 0)
    assert.equal(handled, 1)
    assert.deepEqual(cuts, ['pipelined'])
  })

  test(`A2: ${kind}: a peer that does not read is cut off in time, by the size of its answer`, async (t) => {
    const { connect, timers, cuts, count, server } = await start(t, kind, (_request, response) => response.end(large))
    const pending: net.Socket[] = []
    server.on('request', ({ socket }: HttpRequest) => pending.push(socket))
    const socket = await connect()
    socket.pause().write(get())
    await eventually('its answer to wait', () => (pending[0]?.writableLength ?? 0) > 0)
    timers.advance(10_000)
    assert.equal(await count(), 1, 'a slow reader of eight megabytes has more than ten seconds')
    timers.advance(10_000 + (large.length / (16 * 1024)) * 1000)
    await eventually('it to be cut off', async () => (await count()) === 0)
    assert.deepEqual(cuts, ['unread'])
  })

  test(`A1: ${kind}: answers that are not read have a bound over all connections`, async (t) => {
    const { connect, cuts, count } = await start(t, kind, (_request, response) => response.end(large))
    const peers = await Promise.all(Array.from({ length: 16 }, () => connect()))
    for (const peer of peers) peer.pause().write(get())
    await eventually('those beyond it to be cut off', () => cuts.length > 0)
    assert.ok(cuts.every((reason) => reason === 'unread'))
    assert.ok((await count()) < 16)
  })

  test(`A2: ${kind}: one source gets half of the connections, and another source gets in`, async (t) => {
    const { connect, tcp, cuts, count } = await start(t, kind, (_request, response) => response.end('here'))
    const held = []
    for (let each = 0; each < 32; each++) held.push(await connect('127.0.0.2'))
    for (let each = 0; each < 10; each++) tcp('127.0.0.2')
    await eventually('ten to be refused', () => cuts.length === 10)
    assert.ok(cuts.every((reason) => reason === 'source_share'))
    const other = await connect('127.0.0.3')
    const text = collected(other)
    other.write(get())
    await eventually('an answer', () => text().includes('here'))
    for (const socket of held) socket.destroy()
    await eventually('room again', async () => (await count()) === 1)
    const again = await connect('127.0.0.2')
    again.write(get())
    await eventually('an answer', () => again.bytesRead > 0)
  })

  test(`A2: ${kind}: an idle connection makes room for the next one of its source`, async (t) => {
    const { connect, cuts } = await start(t, kind, (_request, response) => response.end('here'), { perSource: 2 })
    const first = await connect()
    const text = collected(first)
    const closed = new Promise((resolve) => first.once('close', resolve))
    first.write(get())
    await eventually('an answer', () => text().includes('here'))
    await connect()
    const third = await connect()
    third.write(get())
    await eventually('an answer to the third', () => third.bytesRead > 0)
    await within('the first to be closed', 5000, closed)
    assert.deepEqual(cuts, [])
  })

  test(`A2: ${kind}: a caller that has proven itself does not count for its source, and has a limit of its own`, async (t) => {
    const options = { perSource: 2, perCaller: 4 }
    const handler: Handler = (request, response) => {
      if (request.url !== '/') provenConnection(request.socket, request.url ?? '')
      response.end('here')
    }
    const { connect, cuts } = await start(t, kind, handler, options)
    const prove = async (name: string): Promise<() => string> => {
      const socket = await connect()
      const text = collected(socket)
      socket.write(get(name))
      return text
    }
    for (const name of ['/a', '/a', '/b', '/c', '/d', '/a', '/a']) {
      const text = await prove(name)
      await eventually(`an answer to ${name}`, () => text().includes('here'))
    }
    assert.deepEqual(cuts, [])
    // A fifth takes the place of one that is only kept for later: who holds a copied certificate cannot keep its node out.
    const fifth = await prove('/a')
    await eventually('the fifth of a caller to be answered', () => fifth().includes('here'))
    assert.deepEqual(cuts, [])
  })
}

test('unfinished handshakes are bounded for a source and in all, and a caller of another source gets in', async (t) => {
  const { connect, tcp, cuts, count } = await start(t, 'tls', (_request, response) => response.end('here'))
  // Of 64 connections 32 may be unfinished, 16 of them of one source.
  for (let each = 0; each < 20; each++) tcp('127.0.0.2')
  await eventually('four to be refused', () => cuts.length === 4)
  for (let each = 0; each < 16; each++) tcp('127.0.0.3')
  await eventually('all slots to be taken', async () => (await count()) === 32)
  const honest = await connect('127.0.0.4')
  honest.write(get())
  await eventually('an answer', () => honest.bytesRead > 0)
  assert.deepEqual([...new Set(cuts)], ['handshakes'])
  assert.equal(cuts.length, 5, 'the oldest made room')
})

test('behind a load balancer the source is the one it names, IPv6 by /64', async (t) => {
  const { tcp, cuts, count, server } = await start(t, 'tls', (_request, response) => response.end('here'), {
    perSource: 2,
  })
  const balancers = { has: () => true, refused: () => {} }
  cleanup(t, () => headers.close())
  const headers = readProxyHeaders(
    server as Parameters<typeof readProxyHeaders>[0],
    balancers,
    manualTimers(manualClock(0)),
  )
  for (const caller of ['192.0.2.1', '192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'])
    tcp().write(proxyHeader(caller))
  await eventually('six to be there', async () => (await count()) === 6)
  assert.deepEqual(cuts, [])
  tcp().write(proxyHeader('192.0.2.1'))
  tcp().write(proxyHeader('2001:db8::3'))
  await eventually('two to be refused', () => cuts.length === 2)
  assert.deepEqual(cuts, ['source_share', 'source_share'])
})

test('a request is not carried out after the answer that closes its connection', async (t) => {
  const handled: string[] = []
  const { connect } = await start(t, 'plain', (request, response) => {
    handled.push(request.url ?? '')
    setImmediate(() => response.writeHead(421, { connection: 'close' }).end())
  })
  const socket = await connect()
  const closed = new Promise((resolve) => socket.resume().once('close', resolve))
  socket.write(get('/first') + get('/second'))
  await within('the end', 5000, closed)
  assert.deepEqual(handled, ['/first'])
})
