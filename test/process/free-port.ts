import { randomInt } from 'node:crypto'
import * as net from 'node:net'

/** Below the range from which Linux takes ports for outgoing connections: none of those gets in between a stop and a restart. */
const lowest = 10_000
const beyond = 32_768
const tries = 100

/** A port of 127.0.0.1 that nobody had a moment ago, for programs that have to come back at the same one. */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < tries; attempt++) {
    const port = randomInt(lowest, beyond)
    if (await isFree(port)) return port
  }
  throw new Error(`none of ${tries} ports was free`)
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = net.createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
