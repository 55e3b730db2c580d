// A load balancer of the test's own: passes TCP connections on, each begun with what the test has it say of its caller.

import * as net from 'node:net'
import { parseIp } from '#platform/ip-address.ts'
import { cleanup, type Scope } from './cleanup.ts'

export type BalancerOptions = {
  /** What each connection to the plane begins with. */
  readonly header: () => Buffer
  /** In one piece with the caller's first bytes; before them, alone; or everything byte by byte. */
  readonly pace?: 'together' | 'apart' | 'bytes'
  /** The address the plane sees. */
  readonly from?: string
}

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

/** Version 2; `more` are further fields as they are. */
export const proxyHeader = (caller: string, more: Buffer = Buffer.alloc(0)): Buffer => {
  const source = parseIp(caller)
  if (source === null) throw new Error(`${caller} is not an address`)
  const ports = Buffer.from([0xc0, 0x00, 0x20, 0xfb])
  const rest = Buffer.concat([source, Buffer.alloc(source.length, 1), ports, more])
  return Buffer.concat([signature, Buffer.from([0x21, source.length === 4 ? 0x11 : 0x21, 0, 0]), rest]).fill(
    Buffer.from([rest.length >> 8, rest.length & 0xff]),
    14,
    16,
  )
}

/** A balancer that speaks for itself. */
export const localHeader = Buffer.concat([signature, Buffer.from([0x20, 0x00, 0x00, 0x00])])

/** Returns the port it listens on. */
export const startBalancer = async (t: Scope, planePort: number, options: BalancerOptions): Promise<number> => {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((caller) => {
    const plane = net.connect({ host: '127.0.0.1', port: planePort, localAddress: options.from ?? '127.0.0.1' })
    for (const [one, other] of [
      [caller, plane],
      [plane, caller],
    ] as const) {
      sockets.add(one)
      one.setNoDelay()
      one.on('error', () => other.destroy())
      one.on('close', () => (sockets.delete(one), other.destroy()))
    }
    plane.pipe(caller)
    passOn(caller, plane, options)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup(t, async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as net.AddressInfo).port
}

const passOn = (caller: net.Socket, plane: net.Socket, { header, pace = 'apart' }: BalancerOptions): void => {
  if (pace === 'together') {
    caller.once('data', (first: Buffer) => {
      plane.write(Buffer.concat([header(), first]))
      caller.pipe(plane)
    })
    return
  }
  if (pace === 'apart') {
    plane.write(header())
    caller.pipe(plane)
    return
  }
  const bytes = [...header()]
  const send = (): void => {
    const byte = bytes.shift()
    if (byte !== undefined && plane.writable) plane.write(Buffer.of(byte), () => setImmediate(send))
    else setTimeout(send, 1).unref()
  }
  caller.on('data', (chunk: Buffer) => bytes.push(...chunk))
  send()
}
