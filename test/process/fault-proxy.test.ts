import assert from 'node:assert/strict'
import * as tls from 'node:tls'
import { test } from 'node:test'
import { eventually } from './eventually.ts'
import { startFaultProxy } from './fault-proxy.ts'
import { startLocalTlsServer } from './local-tls-server.ts'
import { nodeCall, tlsOptions } from './node-call.ts'
import type { Scope } from './cleanup.ts'

const serverBehindProxy = async (t: Scope) => {
  const server = await startLocalTlsServer(t)
  let requests = 0
  server.server.on('request', (_request, response) => {
    requests++
    response.setHeader('content-type', 'application/json')
    response.end('{"ok":true}')
  })
  const proxy = await startFaultProxy(t, { host: '127.0.0.1', port: server.port })
  const target = { url: `https://127.0.0.1:${proxy.port}`, roots: server.target.roots }
  return { proxy, target, requests: () => requests, get: () => nodeCall(target, null, 'GET', '/') }
}

test('without a fault the proxy passes calls through, verified TLS and all', async (t) => {
  const { get } = await serverBehindProxy(t)
  const reply = await get()
  assert.deepEqual([reply.status, reply.body], [200, { ok: true }])
})

test('a dropped reply: the server has handled the request, the caller sees the connection end', async (t) => {
  const { proxy, get, requests } = await serverBehindProxy(t)
  proxy.dropReplies(1)
  await assert.rejects(get())
  assert.deepEqual([requests(), proxy.repliesDropped()], [1, 1])
  assert.equal((await get()).status, 200)
})

test('refuse resets new connections; pass lets them in again', async (t) => {
  const { proxy, get, requests } = await serverBehindProxy(t)
  proxy.refuse()
  await assert.rejects(get())
  assert.equal(requests(), 0)
  proxy.pass()
  assert.equal((await get()).status, 200)
})

test('a blackhole keeps the connection and lets nothing through, not even its end, until it opens', async (t) => {
  const { proxy, target } = await serverBehindProxy(t)
  const socket = tls.connect(tlsOptions(target, null))
  t.after(() => socket.destroy())
  let received = ''
  let ended = false
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()))
  socket.on('end', () => (ended = true))
  await new Promise((resolve) => socket.once('secureConnect', resolve))
  proxy.blackhole()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.deepEqual([received, ended, proxy.connections()], ['', false, 1])
  proxy.pass()
  await eventually('the held-back reply', () => received.includes('"ok":true'))
  await eventually('the held-back end', () => ended)
})

test('delay makes a call take that much longer each way; cut ends what is open', async (t) => {
  const { proxy, target, get } = await serverBehindProxy(t)
  proxy.delay(40)
  const startedMs = performance.now()
  await get()
  // A full handshake and a call are four passages at least.
  assert.ok(performance.now() - startedMs >= 4 * 40)
  proxy.pass()
  const socket = tls.connect(tlsOptions(target, null))
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('secureConnect', resolve))
  proxy.cut()
  await eventually('the cut connection to end', () => socket.destroyed)
  assert.equal(proxy.connections(), 0)
})

test('freeze blackholes what is open and lets new connections through', async (t) => {
  const { proxy, target, get } = await serverBehindProxy(t)
  const old = tls.connect(tlsOptions(target, null))
  old.on('error', () => {})
  t.after(() => old.destroy())
  let received = ''
  old.on('data', (chunk: Buffer) => (received += chunk.toString()))
  await new Promise((resolve) => old.once('secureConnect', resolve))
  proxy.freeze()
  old.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  assert.equal((await get()).status, 200)
  assert.equal(received, '')
  proxy.pass()
  await eventually('the held-back reply', () => received.includes('"ok":true'))
})
