// The address that a node has for its plane. It leads where the test says, and counts connections and how often the server
// behind it answered.

import * as net from 'node:net'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { replyWatch } from '../process/tls-records.ts'

export type Address = { readonly host: string; readonly port: number }

export type WatchedRelay = {
  /** From now on, and for those who are there already it ends. */
  leadsTo(address: Address): void
  came(): number
  /** Connections on which something was said beyond the handshake: a request that was answered. */
  answered(): number
}

export const openWatchedRelay = async (t: Scope, listen: Address, to: Address): Promise<WatchedRelay> => {
  let target = to
  let came = 0
  let answered = 0
  const open = new Set<net.Socket>()
  const server = net.createServer((client) => {
    came++
    const upstream = net.connect(target)
    const watch = replyWatch()
    let isAnswered = false
    open.add(client)
    client.on('data', watch.sent)
    upstream.on('data', (chunk: Buffer) => {
      if (watch.received(chunk) === 0 || isAnswered) return
      isAnswered = true
      answered++
    })
    client.pipe(upstream)
    upstream.pipe(client)
    const end = (): void => {
      open.delete(client)
      client.destroy()
      upstream.destroy()
    }
    for (const side of [client, upstream]) side.on('error', () => {}).on('close', end)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(listen.port, listen.host, resolve)
  })
  cleanup(t, async () => {
    for (const client of open) client.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    leadsTo(address) {
      target = address
      for (const client of open) client.destroy()
    },
    came: () => came,
    answered: () => answered,
  }
}
