// A1, A2: what one peer may hold at an HTTP server, without TLS, with it, and with threads that speak it. The servers are real
// and so are the sockets; only the time in which a peer has to read is the test's own.

import assert from 'node:assert/strict'
import * as http from 'node:http'
import * as net from 'node:net'
import { Duplex } from 'node:stream'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import { boundServer, type ServerBounds } from '#platform/bounded-server.ts'
import { provenConnection, type ConnectionLimits } from '#platform/connections.ts'
import type { HttpRequest, HttpResponse } from '#platform/http-server.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import { systemTimers } from '#platform/timers.ts'
import { openTlsListener } from '#platform/tls-listener.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { proxyHeader } from '../process/balancer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { localServerIdentity } from '../process/local-tls-server.ts'

type Handler = (request: HttpRequest, response: HttpResponse) => void
type Options = Partial<Pick<ConnectionLimits, 'connections' | 'perSource' | 'perCaller'>>

type Kind = 'plain' | 'tls' | 'threads'

/** What a test asks of a server, whoever accepts its connections. */
type Started = {
  readonly port: number
  /** Null: without TLS. */
  readonly roots: readonly string[] | null
  count(): Promise<number>
}

const start = async (
  t: TestContext,
  kind: Kind,
  handler: Handler,
  options: Options = {},
  balancers: Balancers | null = null,
) => {
  const timers = manualTimers(manualClock(0))
  const cuts: string[] = []
  const limits = { connections: 64, perSource: null, perCaller: null, ...options }
  const bounds = { ...limits, timers, onCut: (reason: string) => void cuts.push(reason), unreadable: () => '' }
  const callers: net.Socket[] = []
  const noting: Handler = (request, response) => {
    callers.push(request.socket)
    handler(request, response)
  }
  const { port, roots, count } = await (kind === 'plain'
    ? startPlain(t, noting, bounds)
    : startTls(t, kind === 'threads' ? 1 : 0, noting, bounds, balancers))
  const tcp = (from = '127.0.0.1'): net.Socket => {
    const socket = net.connect({ host: '127.0.0.1', port, localAddress: from })
    cleanup(t, () => void socket.destroy())
    return socket.on('error', () => {})
  }
  const connect = async (from?: string): Promise<net.Socket> => {
    const bare = tcp(from)
    if (roots === null) return bare
    const socket = tls.connect({ socket: bare, ca: [...roots], servername: 'localhost' })
    socket.on('error', () => {})
    await within('a handshake', 5000, new Promise((resolve) => socket.once('secureConnect', resolve)))
    return socket
  }
  return { timers, cuts, callers, tcp, connect, count }
}

const startPlain = async (t: TestContext, handler: Handler, bounds: ServerBounds): Promise<Started> => {
  const server = http.createServer(handler)
  boundServer(server, bounds)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup(t, async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const count = (): Promise<number> =>
    new Promise((resolve, reject) => server.getConnections((error, now) => (error ? reject(error) : resolve(now))))
  return { port: (server.address() as net.AddressInfo).port, roots: null, count }
}

const startTls = async (
  t: TestContext,
  threads: number,
  handler: Handler,
  bounds: ServerBounds,
  balancers: Balancers | null,
): Promise<Started> => {
  const identity = localServerIdentity()
  const listener = openTlsListener(systemTimers, {
    options: { ...identity, clientRoots: null, rejectUnauthorized: true },
    threads,
    handler,
    onUpgrade: null,
    bounds,
    balancers,
    onHandshakeFailed: () => {},
  })
  cleanup(t, () => listener.stop(0))
  const port = await listener.listen({ host: '127.0.0.1', port: 0, shared: false })
  return { port, roots: [identity.chainPem], count: () => listener.connections() }
}

/** What a client says first. */
const clientHello = (): Promise<Buffer> =>
  new Promise((resolve) => {
    const pipe = new Duplex({ read() {}, write: (chunk: Buffer) => resolve(chunk) })
    tls.connect({ socket: pipe, servername: 'localhost' }).on('error', () => {})
  })

const get = (path = '/'): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const collected = (socket: net.Socket): (() => string) => {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  return () => text
}
const large = Buffer.alloc(8 * 1024 * 1024, 'x')

for (const kind of ['plain', 'tls', 'threads'] as const) {
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
    const { connect, timers, cuts, count, callers } = await start(t, kind, (_request, response) => response.end(large))
    const socket = await connect()
    socket.pause().write(get())
    await eventually('its answer to wait', () => (callers[0]?.writableLength ?? 0) > 0)
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

for (const kind of ['tls', 'threads'] as const) {
  test(`${kind}: unfinished handshakes are bounded for a source and in all, and a caller of another source gets in`, async (t) => {
    const { connect, tcp, cuts, count } = await start(t, kind, (_request, response) => response.end('here'))
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

  test(`${kind}: sources that push each other's handshakes out are slowed`, async (t) => {
    const { tcp, cuts } = await start(t, kind, (_request, response) => response.end('here'))
    const hello = await clientHello()
    for (let round = 0; round < 60; round++) {
      for (const source of ['127.0.0.2', '127.0.0.3', '127.0.0.4'])
        for (let each = 0; each < 12; each++) tcp(source).write(hello.subarray(0, 100))
      if (cuts.includes('source_pace')) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.ok(cuts.includes('handshakes'))
    await eventually('them to be slowed', () => cuts.includes('source_pace'))
  })

  test(`${kind}: behind a load balancer the source is the one it names, IPv6 by /64`, async (t) => {
    const refused: string[] = []
    const balancers = { has: () => true, refused: (trouble: string) => void refused.push(trouble) }
    const options = { perSource: 2 }
    const { tcp, cuts, count } = await start(t, kind, (_request, response) => response.end('here'), options, balancers)
    for (const caller of ['192.0.2.1', '192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'])
      tcp().write(proxyHeader(caller))
    await eventually('six to be there', async () => (await count()) === 6)
    assert.deepEqual(cuts, [])
    tcp().write(proxyHeader('192.0.2.1'))
    tcp().write(proxyHeader('2001:db8::3'))
    await eventually('two to be refused', () => cuts.length === 2)
    assert.deepEqual(cuts, ['source_share', 'source_share'])
    tcp().write('this is no header of a load balancer')
    await eventually('one to be refused for its header', () => refused.length === 1)
    assert.deepEqual(refused, ['invalid'])
  })

  test(`${kind}: no more connections than there may be, and an idle one makes room`, async (t) => {
    const { connect, tcp, count } = await start(t, kind, (_request, response) => response.end('here'), {
      connections: 16,
    })
    const first = await connect('127.0.0.2')
    const text = collected(first)
    first.write(get())
    await eventually('an answer', () => text().includes('here'))
    const closed = new Promise((resolve) => first.once('close', resolve))
    for (let each = 3; each < 40; each++) tcp(`127.0.0.${each}`)
    await within('the idle one to be closed', 10_000, closed)
    assert.ok((await count()) <= 16)
  })
}

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
