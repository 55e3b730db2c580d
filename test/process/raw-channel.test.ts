import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebSocketServer, type WebSocket } from 'ws'
import { eventually } from './eventually.ts'
import { startLocalTlsServer } from './local-tls-server.ts'
import { openRawChannel, type ChannelBehaviour, type RawChannel } from './raw-channel.ts'
import type { Scope } from './cleanup.ts'

const openAgainstWs = async (t: Scope, behaviour: ChannelBehaviour) => {
  const { target, server } = await startLocalTlsServer(t)
  const sockets = new WebSocketServer({ server, handleProtocols: () => 'muster.v1' })
  const received: string[] = []
  const served = new Promise<WebSocket>((resolve) =>
    sockets.once('connection', (socket) => {
      socket.on('message', (data) => received.push((data as Buffer).toString()))
      resolve(socket)
    }),
  )
  const channel = await openRawChannel(target, null, 'gpu-001', behaviour)
  assert.ok('frames' in channel)
  return { channel, served: await served, received }
}

const ended = (channel: RawChannel) => eventually('the channel to end', () => channel.ended())

test('a raw channel says hello, takes frames of every length, answers pings and closes', async (t) => {
  const { channel, served, received } = await openAgainstWs(t, {})
  await eventually('its hello', () => received.some((text) => JSON.parse(text).type === 'hello'))
  const long = 'x'.repeat(70_000)
  for (const body of ['short', 'y'.repeat(300), long])
    served.send(JSON.stringify({ seq: 1, type: body.slice(0, 1), body }))
  assert.equal((await channel.frame('x')).body, long)
  assert.equal(channel.frames.length, 3)
  let ponged = false
  served.on('pong', () => (ponged = true))
  served.ping()
  await eventually('its pong', () => ponged)
  assert.ok(channel.send('applied', { text: long }))
  await eventually('the long frame', () => received.some((text) => text.length > 70_000))
  served.close(4001, 'go')
  await ended(channel)
  assert.deepEqual(channel.closeFrame(), { code: 4001, reason: 'go' })
})

test('a raw channel that ignores pings and closes goes on talking until the socket is destroyed', async (t) => {
  const { channel, served, received } = await openAgainstWs(t, { pings: 'ignored', closes: 'ignored', hello: null })
  served.on('pong', () => assert.fail('a ping was answered'))
  served.ping()
  served.close(4001, 'go')
  await eventually('the close frame', () => channel.closeFrame())
  assert.ok(channel.send('applied', {}))
  await eventually('a frame after the close', () => received.length === 1)
  assert.equal(channel.ended(), false)
  served.terminate()
  await ended(channel)
})

test('a refused upgrade is a value with its status and body', async (t) => {
  const { target, server } = await startLocalTlsServer(t)
  server.on('upgrade', (_request, socket) =>
    socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 17\r\n\r\n{"code":"NOT_IT"}'),
  )
  const refused = await openRawChannel(target, null, 'gpu-001')
  assert.deepEqual(refused, { status: 403, body: { code: 'NOT_IT' } })
})
