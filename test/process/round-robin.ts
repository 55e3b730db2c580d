// A load balancer of the test's own before several planes: the address that all of them call themselves by. Connections
// go round, or where the test steers them; one that no plane takes there goes to the next.

import * as net from 'node:net'
import { cleanup, type Scope } from './cleanup.ts'

export type RoundRobin = {
  /** New connections go there first; null: round again. */
  steer(place: number | null): void
}

type Address = { readonly host: string; readonly port: number }

export const startRoundRobin = async (t: Scope, at: Address, planes: readonly Address[]): Promise<RoundRobin> => {
  const sockets = new Set<net.Socket>()
  let steered: number | null = null
  let turn = 0
  const connect = (caller: net.Socket, place: number, tries: number): void => {
    const plane = net.connect({ ...(planes[place % planes.length] as Address), noDelay: true })
    const giveUp = (): void => {
      plane.destroy()
      if (tries > 1) connect(caller, place + 1, tries - 1)
      else caller.resetAndDestroy()
    }
    plane.once('error', giveUp)
    plane.once('connect', () => {
      plane.off('error', giveUp)
      for (const [one, other] of [
        [caller, plane],
        [plane, caller],
      ] as const) {
        sockets.add(one)
        one.on('error', () => other.destroy())
        one.on('close', () => (sockets.delete(one), other.destroy()))
      }
      if (caller.destroyed) return void plane.destroy()
      caller.pipe(plane)
      plane.pipe(caller)
    })
  }
  const server = net.createServer({ noDelay: true }, (caller) => {
    caller.on('error', () => caller.destroy())
    connect(caller, steered ?? turn++, planes.length)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at.port, at.host, resolve)
  })
  cleanup(t, async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { steer: (place) => void (steered = place) }
}
