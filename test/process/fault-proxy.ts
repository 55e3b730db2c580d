// A TCP proxy on loopback that can do to a connection what networks do. It knows one thing of TLS: which bytes of the
// plane are a reply, so that it can lose exactly those.

import * as net from 'node:net'
import { cleanup, type Scope } from './cleanup.ts'
import { replyWatch } from './tls-records.ts'

export type FaultProxy = {
  readonly port: number
  /** All faults off; what a blackhole held back is delivered, as after a retransmission. */
  pass(): void
  /** Connections stay and new ones are accepted, and nothing gets through in either direction, not even an end. */
  blackhole(): void
  /** As a blackhole, for the connections that are open now; new ones pass. What a machine leaves behind that loses power. */
  freeze(): void
  /** New connections are reset. Open ones go on. */
  refuse(): void
  /** Every chunk is that much later, in both directions. */
  delay(ms: number): void
  /**
   * The next `count` requests reach the plane; instead of its reply the caller sees the connection end. Smaller replies
   * than `fromBytes` pass.
   */
  dropReplies(count: number, fromBytes?: number): void
  repliesDropped(): number
  /** Every open connection ends now, on both sides. */
  cut(): void
  connections(): number
  /** When each connection came, by the monotonic clock, whatever became of it. */
  came(): readonly number[]
}

type Pair = { client: net.Socket; upstream: net.Socket; frozen: boolean }
type Mode = { blackhole: boolean; refuse: boolean; delayMs: number; dropReplies: number; dropFromBytes: number }

/** No reply with a certificate is smaller, and no other reply to a machine is as large. */
export const certificateBytes = 2048

type Address = { readonly host: string; readonly port: number }

/** `listen`: where callers find it, when that is not for the system to choose. */
export const startFaultProxy = async (
  t: Scope,
  target: Address,
  listen: Address = { host: '127.0.0.1', port: 0 },
): Promise<FaultProxy> => {
  const mode: Mode = { blackhole: false, refuse: false, delayMs: 0, dropReplies: 0, dropFromBytes: 1 }
  const pairs = new Set<Pair>()
  const heldBack: (() => void)[] = []
  const came: number[] = []
  let dropped = 0

  /** Runs now, later, or when the blackhole opens; the order of calls is kept. */
  const deliver = (pair: Pair, run: () => void): void => {
    if (mode.delayMs > 0 && !isHeld(pair)) setTimeout(() => deliverNow(pair, run), mode.delayMs)
    else deliverNow(pair, run)
  }
  const isHeld = ({ frozen }: Pair): boolean => mode.blackhole || frozen
  const deliverNow = (pair: Pair, run: () => void): void => (isHeld(pair) ? void heldBack.push(run) : run())

  const end = (pair: Pair): void => {
    pairs.delete(pair)
    pair.client.destroy()
    pair.upstream.destroy()
  }

  const server = net.createServer((client) => {
    came.push(performance.now())
    if (mode.refuse) {
      client.resetAndDestroy()
      return
    }
    const upstream = net.connect({ ...target, noDelay: true })
    client.setNoDelay(true)
    const watch = replyWatch()
    const pair: Pair = { client, upstream, frozen: false }
    pairs.add(pair)
    client.on('data', (chunk: Buffer) => {
      watch.sent(chunk)
      deliver(pair, () => void upstream.write(chunk))
    })
    upstream.on('data', (chunk: Buffer) => {
      const replyBytes = watch.received(chunk)
      if (mode.dropReplies > 0 && replyBytes >= mode.dropFromBytes) {
        mode.dropReplies--
        dropped++
        end(pair)
        return
      }
      deliver(pair, () => void client.write(chunk))
    })
    for (const side of [client, upstream]) {
      side.on('error', () => {})
      side.on('close', () => deliver(pair, () => end(pair)))
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(listen.port, listen.host, resolve)
  })
  cleanup(t, async () => {
    for (const pair of pairs) end(pair)
    await new Promise((resolve) => server.close(resolve))
  })

  return {
    port: (server.address() as net.AddressInfo).port,
    pass() {
      Object.assign(mode, { blackhole: false, refuse: false, delayMs: 0, dropReplies: 0 })
      for (const pair of pairs) pair.frozen = false
      for (const run of heldBack.splice(0)) run()
    },
    blackhole: () => void (mode.blackhole = true),
    freeze: () => pairs.forEach((pair) => void (pair.frozen = true)),
    refuse: () => void (mode.refuse = true),
    delay: (ms) => void (mode.delayMs = ms),
    dropReplies: (count, fromBytes = 1) => void Object.assign(mode, { dropReplies: count, dropFromBytes: fromBytes }),
    repliesDropped: () => dropped,
    cut: () => [...pairs].forEach(end),
    connections: () => pairs.size,
    came: () => came,
  }
}
