// Behind load balancers: who is calling is what a listed balancer says, and what nobody else says.

import assert from 'node:assert/strict'
import * as net from 'node:net'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import { readProxyHeaders } from '#platform/proxied-server.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { localHeader, proxyHeader, startBalancer, type BalancerOptions } from '../process/balancer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { startLocalTlsServer } from '../process/local-tls-server.ts'
import { nodeCall, tlsOptions, type NodeTarget } from '../process/node-call.ts'
import { journalEntries, newSecret } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane } from '../process/start-plane.ts'

/** 127.0.0.1 is a balancer, and every other loopback address is an ordinary client. */
const behind127 = ['--proxy-from', '127.0.0.1', '--operator-tls']
const plane = sharedPlane({ args: behind127 })

const throughBalancer = async (t: TestContext, options: BalancerOptions, port = plane().nodePort) =>
  plane().target(await startBalancer(t, port, options))

const sourceOf = async (node: string, type: string): Promise<string> => {
  const [entry] = await journalEntries(plane(), { node, type })
  return entry.source
}

const enrolled = async (target: NodeTarget, id: string): Promise<void> => {
  const { status, body } = await rawNode(target).enrollByToken(await newSecret(plane(), id))
  assert.equal(status, 200, JSON.stringify(body))
}

/** What a balancer sent before it was closed, for want of a header. */
const refusals = async (trouble: string): Promise<number> => {
  const { body } = await plane().api('GET', '/metrics')
  const line = new RegExp(`^muster_proxy_headers_refused_total\\{trouble="${trouble}"\\} (\\d+)$`, 'm').exec(body)
  return Number(line?.[1] ?? Number.NaN)
}

for (const pace of ['together', 'apart', 'bytes'] as const)
  test(`the journal has the real caller, the header and what follows it sent ${pace}`, async (t) => {
    const id = `gpu-${pace}`
    await enrolled(await throughBalancer(t, { header: () => proxyHeader('198.51.100.7'), pace }), id)
    assert.equal(await sourceOf(id, 'host.enrolled'), '198.51.100.7')
  })

test('callers by IPv6 are named, mapped ones as the IPv4 they are, whatever else a balancer adds', async (t) => {
  const more = Buffer.concat([Buffer.from([0x05, 0x00, 0x80]), Buffer.alloc(128, 7)])
  await enrolled(await throughBalancer(t, { header: () => proxyHeader('2001:db8::7', more) }), 'gpu-six')
  assert.equal(await sourceOf('gpu-six', 'host.enrolled'), '2001:db8::7')
  await enrolled(await throughBalancer(t, { header: () => proxyHeader('::ffff:192.0.2.9') }), 'gpu-mapped')
  assert.equal(await sourceOf('gpu-mapped', 'host.enrolled'), '192.0.2.9')
})

test('a balancer that speaks for itself is the caller', async (t) => {
  await enrolled(await throughBalancer(t, { header: () => localHeader }), 'gpu-local')
  assert.equal(await sourceOf('gpu-local', 'host.enrolled'), '127.0.0.1')
})

test('of many connections at once each has its own caller', async (t) => {
  const numbers = Array.from({ length: 60 }, (_, number) => number)
  const secrets = await Promise.all(numbers.map((number) => newSecret(plane(), `crowd-${number}`)))
  await Promise.all(
    numbers.map(async (number) => {
      const pace = (['together', 'apart', 'bytes'] as const)[number % 3] ?? 'apart'
      const target = await throughBalancer(t, { header: () => proxyHeader(`203.0.113.${number}`), pace })
      const { status, body } = await rawNode(target).enrollByToken(secrets[number] ?? '')
      assert.equal(status, 200, JSON.stringify(body))
    }),
  )
  for (const number of numbers) assert.equal(await sourceOf(`crowd-${number}`, 'host.enrolled'), `203.0.113.${number}`)
})

test('anonymous callers are counted by their source, not by the balancer they come through', async (t) => {
  const own = await startPlane(t, { args: behind127 })
  const set = { strangersPerMinute: 100, strangersPerMinutePerSource: 3 }
  assert.equal((await own.api('PATCH', '/v1/domain', { set })).status, 200)
  const through = async (caller: string) => {
    const port = await startBalancer(t, own.nodePort, { header: () => proxyHeader(caller) })
    const target = await own.target(port)
    return async () => (await rawNode(target).enrollByToken(`enroll_${'A'.repeat(43)}`)).body.code
  }
  const [one, other] = [await through('198.51.100.1'), await through('198.51.100.2')]
  const codes = []
  for (let attempt = 0; attempt < 5; attempt++) codes.push(await one())
  assert.deepEqual(codes, ['TOKEN_INVALID', 'TOKEN_INVALID', 'TOKEN_INVALID', 'RATE_LIMITED', 'RATE_LIMITED'])
  assert.equal(await other(), 'TOKEN_INVALID')
})

type Watched = { readonly socket: net.Socket; readonly ended: () => boolean; readonly received: () => number }

const connect = (t: TestContext, from = '127.0.0.1', port = plane().nodePort): Watched => {
  const socket = net.connect({ host: '127.0.0.1', port, localAddress: from })
  cleanup(t, () => void socket.destroy())
  const state = { ended: false, received: 0 }
  socket.on('data', (chunk: Buffer) => (state.received += chunk.length))
  for (const event of ['end', 'close', 'error'] as const) socket.on(event, () => (state.ended = true))
  return { socket, ended: () => state.ended, received: () => state.received }
}

test('a balancer that sends no header, or another, is closed without a word and counted', async (t) => {
  const before = await refusals('invalid')
  const wrong = [
    Buffer.from('PROXY TCP4 192.0.2.7 10.0.0.1 49152 8443\r\n'),
    Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    proxyHeader('192.0.2.7').fill(0x31, 12, 13),
    proxyHeader('192.0.2.7').fill(0x12, 13, 14),
    proxyHeader('192.0.2.7').fill(0xff, 14, 16),
  ]
  const callers = wrong.map((bytes) => {
    const caller = connect(t)
    caller.socket.write(bytes)
    return caller
  })
  await eventually('all to be closed', () => callers.every(({ ended }) => ended()), { withinMs: 2_000 })
  assert.deepEqual(
    callers.map(({ received }) => received()),
    wrong.map(() => 0),
  )
  assert.equal((await refusals('invalid')) - before, wrong.length)
  await assert.rejects(nodeCall(await plane().target(), null, 'GET', '/v1/bundle'), 'TLS alone is no header')
})

test('a balancer is given three seconds for its header, whatever it drips', async (t) => {
  const before = await refusals('late')
  const dripping = connect(t)
  const bytes = [...proxyHeader('192.0.2.7', Buffer.alloc(500))]
  const drip = setInterval(() => dripping.socket.writable && dripping.socket.write(Buffer.of(bytes.shift() ?? 0)), 100)
  cleanup(t, () => clearInterval(drip))
  const silent = connect(t)
  const startedMs = performance.now()
  await eventually('both to be closed', () => dripping.ended() && silent.ended(), { withinMs: 6_000 })
  assert.ok(performance.now() - startedMs > 2_500)
  assert.equal((await refusals('late')) - before, 2)
})

test('a health check of a balancer does no harm', async (t) => {
  const before = await refusals('unread')
  connect(t).socket.end()
  connect(t).socket.end(proxyHeader('192.0.2.7').subarray(0, 20))
  const rude = connect(t)
  await new Promise((resolve) => rude.socket.write(proxyHeader('192.0.2.7').subarray(0, 20), resolve))
  const counted = (count: number) => async (): Promise<true> => {
    assert.equal((await refusals('unread')) - before, count)
    return true
  }
  await eventually('them to be counted', counted(2))
  rude.socket.resetAndDestroy()
  await eventually('it to be counted', counted(3))
  const ruder = connect(t)
  await new Promise((resolve) => ruder.socket.once('connect', resolve))
  ruder.socket.resetAndDestroy()
  const polite = connect(t)
  polite.socket.end(localHeader)
  await eventually('it to be closed', () => polite.ended())
})

test('a header is required from balancers only, and from another address it breaks the handshake', async (t) => {
  const from = '127.0.0.2'
  const direct = await throughBalancer(t, { header: () => Buffer.alloc(0), from })
  await enrolled(direct, 'gpu-direct')
  assert.equal(await sourceOf('gpu-direct', 'host.enrolled'), from)
  const liar = await throughBalancer(t, { header: () => proxyHeader('198.51.100.7'), from })
  await assert.rejects(nodeCall(liar, null, 'GET', '/v1/bundle'))
})

test('what is said inside TLS changes nothing', async (t) => {
  const target = await throughBalancer(t, { header: () => proxyHeader('198.51.100.8') })
  const socket = tls.connect(tlsOptions(target, null))
  cleanup(t, () => void socket.destroy())
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  await within('a handshake', 10_000, new Promise((resolve) => socket.once('secureConnect', resolve)))
  socket.write(proxyHeader('192.0.2.66'))
  socket.write('GET /v1/bundle HTTP/1.1\r\nHost: plane\r\n\r\n')
  await eventually('a refusal', () => text.startsWith('HTTP/1.1 400 '))

  const twice = await throughBalancer(t, {
    header: () => Buffer.concat([proxyHeader('198.51.100.8'), proxyHeader('192.0.2.66')]),
  })
  await assert.rejects(nodeCall(twice, null, 'GET', '/v1/bundle'), 'a second header is no handshake')
})

test('recovery and operators by TLS are behind the same balancers', async (t) => {
  const portOf = (url: string): number => Number(new URL(url).port)
  const { roots } = await plane().target()
  for (const url of [plane().recoveryUrl, plane().operatorUrl]) {
    const port = portOf(url)
    const bare = connect(t, '127.0.0.1', port)
    bare.socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]))
    await eventually('it to be closed', () => bare.ended(), { withinMs: 2_000 })
    assert.equal(bare.received(), 0)
  }
  const caller = '198.51.100.9'
  const port = await startBalancer(t, portOf(plane().operatorUrl), { header: () => proxyHeader(caller) })
  const target = { url: `https://localhost:${port}`, roots }
  assert.equal((await nodeCall(target, null, 'GET', '/readyz')).status, 200)
  assert.equal((await nodeCall(target, null, 'GET', '/v1/nodes')).status, 401)
  const refused = await eventually('it to be journaled', async () =>
    (await journalEntries(plane())).find((entry) => entry.source === caller),
  )
  assert.equal(refused.source, caller)
})

test('an IPv4 balancer is known on an IPv6 socket', async (t) => {
  const own = await startPlane(t, { args: behind127, nodeListen: '[::]:0' })
  const port = await startBalancer(t, own.nodePort, { header: () => proxyHeader('198.51.100.7') })
  const target = await own.target(port)
  const { status, body } = await rawNode(target).enrollByToken(await newSecret(own, 'gpu-001'))
  assert.equal(status, 200, JSON.stringify(body))
  const [entry] = await journalEntries(own, { node: 'gpu-001', type: 'host.enrolled' })
  assert.equal(entry.source, '198.51.100.7')
})

test('a connection whose header is awaited counts among the connections', async (t) => {
  const files = 400
  const limited = await startPlane(t, {
    args: behind127,
    wrapper: ['sh', '-c', `ulimit -n ${files} && exec "$@"`, 'sh'],
  })
  const cap = files - 256
  const callers = Array.from({ length: cap + 20 }, () => connect(t, '127.0.0.1', limited.nodePort))
  await eventually('those beyond it to be dropped', () => callers.filter((one) => one.ended()).length >= 20, {
    withinMs: 2_000,
  })
  assert.equal((await limited.stop()).code, 0)
})

test('a connection whose header is awaited is cut when the server closes, however much time is left', async (t) => {
  const { server, port } = await startLocalTlsServer(t)
  const refused: string[] = []
  const balancers = { has: () => true, refused: (trouble: string) => void refused.push(trouble) }
  const headers = readProxyHeaders(server, balancers, manualTimers(manualClock(0)))
  const callers = [connect(t, '127.0.0.1', port), connect(t, '127.0.0.1', port)]
  const count = (): Promise<number> =>
    new Promise((resolve, reject) => server.getConnections((error, now) => (error ? reject(error) : resolve(now))))
  await eventually('both to be there', async () => (await count()) === 2)
  headers.close()
  await eventually('both to be cut', () => callers.every(({ ended }) => ended()))
  await eventually('none to be left', async () => (await count()) === 0)
  assert.deepEqual(refused, [], 'that is no fault of theirs')
})
