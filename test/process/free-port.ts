import { randomInt } from 'node:crypto'
import * as net from 'node:net'

/** How the runner of the tests says which of the lanes that run side by side this process is: `2/9`. */
export const laneVariable = 'MUSTER_TEST_LANE'

/** Below the range from which Linux takes ports for outgoing connections: none of those gets in between a stop and a restart. */
const lowest = 10_000
const beyond = 32_768
const tries = 100
/** The only one here of the ports that `fetch` does not call, because a protocol other than HTTP had it. */
const refusedByFetch = 10_080

/**
 * Each lane has ports of its own, handed out in turn: a plane that is stopped comes back at its port, and one that starts takes it
 * seconds after it was chosen. No other may have chosen it by then.
 */
export const portsOf = (lane: string | undefined): { readonly from: number; readonly count: number } => {
  const [at, lanes] = (lane ?? '0/1').split('/').map(Number) as [number, number]
  const count = Math.floor((beyond - lowest) / lanes)
  return { from: lowest + at * count, count }
}

const { from, count } = portsOf(process.env[laneVariable])
let next = randomInt(count)

/** A port of 127.0.0.1 that nobody has, for programs that have to come back at the same one. */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < tries; attempt++) {
    const port = from + (next++ % count)
    if (port !== refusedByFetch && (await isFree(port))) return port
  }
  throw new Error(`none of ${tries} ports was free`)
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = net.createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
