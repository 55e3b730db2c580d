// What a caller may cost before it has proven anything: time, bytes, connections.

import assert from 'node:assert/strict'
import * as net from 'node:net'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import { activeNode } from '../process/active-node.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { nodeCall, tlsOptions, type NodeTarget } from '../process/node-call.ts'
import { recoverableNode } from '../process/raw-recovery.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane } from '../process/start-plane.ts'

const plane = sharedPlane()

type Watched = { readonly socket: net.Socket; readonly ended: () => boolean; readonly received: () => string }

/** Left open on this side whatever the other does: only an end that the plane makes is one. */
const watch = (t: TestContext, socket: net.Socket): Watched => {
  cleanup(t, () => void socket.destroy())
  const state = { ended: false, text: '' }
  socket.on('data', (chunk: Buffer) => (state.text += chunk.toString('latin1')))
  for (const event of ['end', 'close', 'error'] as const) socket.on(event, () => (state.ended = true))
  return { socket, ended: () => state.ended, received: () => state.text }
}

const connectTcp = (t: TestContext, target: NodeTarget): Watched =>
  watch(t, net.connect({ host: '127.0.0.1', port: Number(new URL(target.url).port), allowHalfOpen: true }))

const connectTls = async (t: TestContext, target: NodeTarget, from = '127.0.0.1'): Promise<Watched> => {
  const bare = net.connect({
    host: '127.0.0.1',
    port: Number(new URL(target.url).port),
    localAddress: from,
    allowHalfOpen: true,
  })
  cleanup(t, () => void bare.destroy())
  const socket = tls.connect({ ...tlsOptions(target, null), socket: bare })
  const watched = watch(t, socket)
  await within('a handshake', 15_000, new Promise((resolve) => socket.once('secureConnect', resolve)))
  return watched
}

/** The first bytes of a ClientHello that never goes on. */
const halfHello = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])

test('a caller that never finishes its handshake or its headers is closed in time', async (t) => {
  const target = await plane().target()
  const silent = [connectTcp(t, target), connectTcp(t, target)]
  const begun = [connectTcp(t, target), connectTcp(t, target)]
  for (const { socket } of begun) socket.write(halfHello)
  const quiet = [await connectTls(t, target), await connectTls(t, target)]
  const slow = [await connectTls(t, target), await connectTls(t, target)]
  for (const { socket } of slow) {
    socket.write('GET /v1/bundle HTTP/1.1\r\nHost: plane\r\n')
    const drip = setInterval(() => socket.writable && socket.write('X-More: of it\r\n'), 500)
    cleanup(t, () => clearInterval(drip))
  }
  const all = { silent, begun, quiet, slow }
  const open = (): string[] =>
    Object.entries(all).flatMap(([kind, them]) => them.filter((it) => !it.ended()).map(() => kind))
  // Ten seconds each, looked after every five.
  await eventually('the plane to close them all', () => open().length === 0, { withinMs: 20_000, everyMs: 100 }).catch(
    (error: unknown) => assert.fail(`still open: ${open().join(', ')} (${String(error)})`),
  )
})

test('a refused upgrade is over when it is answered, even for a caller that does not hang up', async (t) => {
  const target = await plane().target()
  const caller = await connectTls(t, target)
  caller.socket.write(
    'GET /v1/nodes/gpu-001/channel HTTP/1.1\r\nHost: plane\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  )
  await eventually('the refusal', () => caller.received().includes('CLIENT_CERT_REQUIRED'))
  // What is sent to a socket that is gone comes back as a reset; from one that is only half closed nothing comes back.
  const gone = (): boolean => caller.socket.destroyed || (caller.socket.write('anybody there?'), false)
  await eventually('the connection to be gone', gone, { withinMs: 5_000 })
})

const post = async (target: NodeTarget, length: number) =>
  nodeCall(target, null, 'POST', '/v1/enroll', { method: 'token', csr: 'x'.repeat(length) })

test('a body of more than 64 KiB is too large, however it is sent; one below is looked at', async (t) => {
  const target = await plane().target()
  const below = await post(target, 64 * 1024 - 100)
  assert.deepEqual([below.status, below.body.code], [400, 'REQUEST_INVALID'])
  const above = await post(target, 64 * 1024)
  assert.deepEqual([above.status, above.body.code], [413, 'TOO_LARGE'])

  const chunked = await connectTls(t, target)
  chunked.socket.write(
    'POST /v1/enroll HTTP/1.1\r\nHost: plane\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  for (let sent = 0; sent <= 64 * 1024; sent += 4096) chunked.socket.write(`1000\r\n${' '.repeat(4096)}\r\n`)
  await eventually('an answer', () => /^HTTP\/1\.1 413 [^]*TOO_LARGE/.test(chunked.received()))
})

test('headers of more than 16 KiB are too large', async (t) => {
  const caller = await connectTls(t, await plane().target())
  caller.socket.write(`GET /v1/bundle HTTP/1.1\r\nHost: plane\r\nX-Long: ${'x'.repeat(17 * 1024)}\r\n\r\n`)
  await eventually('an answer', () => /^HTTP\/1\.1 413 [^]*TOO_LARGE/.test(caller.received()))
  await eventually('the end', () => caller.ended())
})

test('what is no HTTP is answered as such and closed', async (t) => {
  const caller = await connectTls(t, await plane().target())
  caller.socket.write('EHLO plane\r\n\r\n')
  await eventually('an answer', () => /^HTTP\/1\.1 400 [^]*REQUEST_INVALID/.test(caller.received()))
  await eventually('the end', () => caller.ended())
})

test('a frame of more than 64 KiB ends its channel', async () => {
  const node = await activeNode(plane(), 'gpu-002')
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  channel.sendText('x'.repeat(64 * 1024 + 1))
  await eventually('the channel to end', () => channel.ended(), { withinMs: 5_000 })
})

test('beyond its connection cap, below the file limit, a plane drops callers and goes on', async (t) => {
  const files = 400
  const cap = files - 256
  const limited = await startPlane(t, { wrapper: ['sh', '-c', `ulimit -n ${files} && exec "$@"`, 'sh'] })
  const node = await activeNode(limited, 'gpu-001')
  const callers = Array.from({ length: cap + 40 }, () => connectTcp(t, node.target))
  await eventually('those beyond it to be dropped', () => callers.filter((one) => one.ended()).length >= 40)
  assert.ok(callers.filter((one) => !one.ended()).length <= cap)
  await assert.rejects(node.confirm(), 'full is full, for known callers too')
  assert.equal((await limited.api('POST', '/v1/tokens', { node: 'gpu-002' })).status, 201, 'operators get through')
  assert.equal((await limited.api('GET', '/readyz')).status, 200)

  for (const { socket } of callers) socket.destroy()
  await eventually('it to answer again', async () => (await node.confirm()).status === 200)
  assert.ok(limited.running())
})

test('idle connections make room for new callers, also at the recovery listener', async (t) => {
  const limited = await startPlane(t, { wrapper: ['sh', '-c', 'ulimit -n 400 && exec "$@"', 'sh'] })
  const machine = await recoverableNode(limited, 'gpu-001')
  // One source gets half of what is free, the next half of the rest: together they hold all but a few.
  const kept: Watched[] = []
  for (const [source, count] of [32, 16, 8, 4].entries())
    for (let each = 0; each < count; each++) kept.push(await connectTls(t, machine.target, `127.0.0.${source + 2}`))
  const body = JSON.stringify({ nonce: 'n'.repeat(22) })
  const head = `POST /v1/challenge HTTP/1.1\r\nHost: plane\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  for (const { socket } of kept) socket.write(`${head}\r\n\r\n${body}`)
  await eventually('all to be answered', () => kept.every(({ received }) => received().includes('challenge1.')))
  assert.ok(kept.every(({ ended }) => !ended()))
  await eventually('a machine to get in', async () => (await machine.recover()).status === 200, { withinMs: 5_000 })
})
