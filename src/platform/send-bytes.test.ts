import assert from 'node:assert/strict'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../test/fakes/manual-timers.ts'
import { cleanup } from '../../test/process/cleanup.ts'
import { eventually } from '../../test/process/eventually.ts'
import { lowestBytesPerSecond, mostSilentMs, sendBytes, type SendOutcome } from './send-bytes.ts'

const total = 32 * 1024 * 1024

/** A server that sends `total` bytes, and one caller of it. */
const setUp = async (t: TestContext) => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const seen = { read: 0, mostUnread: 0, outcome: null as SendOutcome | null, closed: false }
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { 'content-length': String(total) })
    response.on('close', () => (seen.closed = true))
    const source = {
      async read(into: Buffer, from: number) {
        seen.read = from + into.length
        const { socket } = response
        seen.mostUnread = Math.max(seen.mostUnread, (socket?.writableLength ?? 0) + into.length)
        return into.fill(from & 0xff).length
      },
      pace: async () => {},
    }
    void sendBytes({ clock, timers }, response, source, 0, total).then((outcome) => {
      seen.outcome = outcome
      if (outcome === 'sent') response.end()
      else response.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup(t, () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const response = await new Promise<http.IncomingMessage>((resolve) => {
    http.get({ port, host: '127.0.0.1', agent: false }, resolve)
  })
  response.on('error', () => {})
  cleanup(t, () => void response.destroy())
  return { clock, timers, seen, response }
}

const settled = async (seen: { read: number }): Promise<number> => {
  let before = -1
  return eventually('the sender to wait for its reader', () => {
    const isStill = seen.read === before
    before = seen.read
    return isStill ? before : null
  })
}

test('a reader that reads gets every byte', async (t) => {
  const { seen, response } = await setUp(t)
  let received = 0
  for await (const chunk of response) received += (chunk as Buffer).length
  assert.equal(received, total)
  await eventually('the end', () => seen.outcome === 'sent' || null)
})

test('of what a reader does not read, one piece is in memory, and the reader is given up in the end', async (t) => {
  const { timers, seen, response } = await setUp(t)
  response.pause()
  assert.ok((await settled(seen)) < total)
  assert.ok(seen.mostUnread <= 256 * 1024, `${seen.mostUnread} bytes`)
  timers.advance(mostSilentMs - 1)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(seen.outcome, null)
  timers.advance(10_000)
  await eventually('the end', () => (seen.outcome === 'slow' && seen.closed) || null)
})

test('what a reader took fast buys it no more silence than any other', async (t) => {
  const { timers, seen, response } = await setUp(t)
  let received = 0
  response.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (received > total / 2) response.pause()
  })
  await settled(seen)
  timers.advance(mostSilentMs + (128 * 1024 * 1000) / lowestBytesPerSecond)
  await eventually('the end', () => seen.outcome === 'slow' || null)
})

test('a reader that hangs up ends it', async (t) => {
  const { seen, response } = await setUp(t)
  response.pause()
  await settled(seen)
  response.destroy()
  await eventually('the end', () => seen.outcome === 'gone' || null)
})
