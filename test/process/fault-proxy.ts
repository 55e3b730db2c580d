// A TCP proxy on loopback that can do to a connection what networks do. It knows one thing of TLS: which bytes of the
// plane are a reply, so that it can lose exactly those.

import * as net from 'node:net'
import { cleanup, type Scope } from './cleanup.ts'
import { applicationDataWatch } from './tls-records.ts'

export type FaultProxy = {
  readonly port: number
  /** All faults off; what a blackhole held back is delivered, as after a retransmission. */
  pass(): void
  /** Connections stay and new ones are accepted, and nothing gets through in either direction, not even an end. */
  blackhole(): void
  /** New connections are reset. Open ones go on. */
  refuse(): void
  /** Every chunk is that much later, in both directions. */
  delay(ms: number): void
  /** The next `count` requests reach the plane; instead of its reply the caller sees the connection end. */
  dropReplies(count: number): void
  repliesDropped(): number
  /** Every open connection ends now, on both sides. */
  cut(): void
  connections(): number
}

type Pair = { client: net.Socket; upstream: net.Socket; requestSeen: () => boolean }
type Mode = { blackhole: boolean; refuse: boolean; delayMs: number; dropReplies: number }

export const startFaultProxy = async (t: Scope, target: { host: string; port: number }): Promise<FaultProxy> => {
  const mode: Mode = { blackhole: false, refuse: false, delayMs: 0, dropReplies: 0 }
  const pairs = new Set<Pair>()
  const heldBack: (() => void)[] = []
  let dropped = 0

  /** Runs now, later, or when the blackhole opens; the order of calls is kept. */
  const deliver = (run: () => void): void => {
    if (mode.blackhole) heldBack.push(run)
    else if (mode.delayMs > 0) setTimeout(() => deliverNow(run), mode.delayMs)
    else run()
  }
  const deliverNow = (run: () => void): void => (mode.blackhole ? void heldBack.push(run) : run())

  const end = (pair: Pair): void => {
    pairs.delete(pair)
    pair.client.destroy()
    pair.upstream.destroy()
  }

  const server = net.createServer((client) => {
    if (mode.refuse) {
      client.resetAndDestroy()
      return
    }
    const upstream = net.connect({ ...target, noDelay: true })
    client.setNoDelay(true)
    const watch = applicationDataWatch()
    const pair: Pair = { client, upstream, requestSeen: watch.seen }
    pairs.add(pair)
    client.on('data', (chunk: Buffer) => {
      watch.bytes(chunk)
      deliver(() => void upstream.write(chunk))
    })
    upstream.on('data', (chunk: Buffer) => {
      if (mode.dropReplies > 0 && pair.requestSeen()) {
        mode.dropReplies--
        dropped++
        end(pair)
        return
      }
      deliver(() => void client.write(chunk))
    })
    for (const side of [client, upstream]) {
      side.on('error', () => {})
      side.on('close', () => deliver(() => end(pair)))
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  cleanup(t, async () => {
    for (const pair of pairs) end(pair)
    await new Promise((resolve) => server.close(resolve))
  })

  return {
    port: (server.address() as net.AddressInfo).port,
    pass() {
      Object.assign(mode, { blackhole: false, refuse: false, delayMs: 0, dropReplies: 0 })
      for (const run of heldBack.splice(0)) run()
    },
    blackhole: () => void (mode.blackhole = true),
    refuse: () => void (mode.refuse = true),
    delay: (ms) => void (mode.delayMs = ms),
    dropReplies: (count) => void (mode.dropReplies = count),
    repliesDropped: () => dropped,
    cut: () => [...pairs].forEach(end),
    connections: () => pairs.size,
  }
}
