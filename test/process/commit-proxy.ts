// Stands between a store and its PostgreSQL, and knows of the protocol just enough to see a COMMIT pass: the moment at
// which a connection breaks decides what either side can know.

import * as net from 'node:net'
import { cleanup, type Scope } from './cleanup.ts'

export type CommitFault =
  /** It reaches the server, its reply nobody, and the connection stays. */
  | 'reply-swallowed'
  /** It is carried out, and instead of the reply the connection ends on both sides. */
  | 'cut-behind'
  /** It never reaches the server, and the connection ends on both sides. */
  | 'cut-before'
  /** It never reaches the server, which hears nothing of the end of the connection either. */
  | 'lost-on-the-way'
  /** The client's side ends at once; the server has it a moment later. */
  | 'overtaken'

export type CommitProxy = {
  readonly port: number
  /** What happens to the next COMMIT of a connection that writes; `andSilence`: from then on nothing gets through. */
  nextCommit(fault: CommitFault, andSilence?: 'andSilence'): void
  /** COMMITs that a fault befell. */
  struck(): number
  /** What silence held back is delivered. */
  pass(): void
}

const overtakenMs = 400

export const startCommitProxy = async (t: Scope, target: { host: string; port: number }): Promise<CommitProxy> => {
  const sockets = new Set<net.Socket>()
  const silenced: (() => void)[] = []
  let next: CommitFault | null = null
  let thenSilent = false
  let struck = 0
  let silent = false

  const server = net.createServer((client) => {
    const upstream = net.connect({ ...target, noDelay: true })
    client.setNoDelay(true)
    const watch = commitWatch()
    let repliesPass = true
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    const endBoth = (): void => {
      client.destroy()
      upstream.destroy()
    }
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    upstream.on('data', (chunk: Buffer) => void (repliesPass && client.write(chunk)))
    client.on('data', (chunk: Buffer) => {
      const fault = watch(chunk) ? next : null
      if (fault === null) {
        if (silent) silenced.push(() => void upstream.write(chunk))
        else upstream.write(chunk)
        return
      }
      next = null
      struck++
      silent = thenSilent
      strike(fault, chunk)
    })
    const strike = (fault: CommitFault, chunk: Buffer): void => {
      switch (fault) {
        case 'reply-swallowed':
          repliesPass = false
          upstream.write(chunk)
          return
        case 'cut-behind':
          repliesPass = false
          upstream.once('data', endBoth)
          upstream.write(chunk)
          return
        case 'cut-before':
          return endBoth()
        case 'lost-on-the-way':
        case 'overtaken':
          client.removeAllListeners('close')
          client.destroy()
          if (fault === 'overtaken') setTimeout(() => upstream.write(chunk), overtakenMs)
      }
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  cleanup(t, async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    port: (server.address() as net.AddressInfo).port,
    nextCommit(fault, andSilence) {
      next = fault
      thenSilent = andSilence !== undefined
    },
    struck: () => struck,
    pass() {
      silent = false
      for (const run of silenced.splice(0)) run()
    },
  }
}

/** Says whether a chunk of the client's has a COMMIT in it, on a connection that groups of commits are written on. */
const commitWatch = (): ((chunk: Buffer) => boolean) => {
  let rest = Buffer.alloc(0)
  let writes: boolean | null = null
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    let seen = false
    // The first message has no type; every other begins with one.
    for (let head = writes === null ? 0 : 1; rest.length >= head + 4; head = 1) {
      const end = head + rest.readInt32BE(head)
      if (rest.length < end) break
      const message = rest.subarray(0, end)
      rest = rest.subarray(end)
      if (writes === null) writes = message.includes('muster write')
      else seen ||= writes && message[0] === 'Q'.charCodeAt(0) && message.includes('COMMIT')
    }
    return seen
  }
}
