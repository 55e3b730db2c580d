// Callers that mean harm, over real sockets: each kind costs the plane what it can, from an address of its own.

import * as net from 'node:net'
import * as tls from 'node:tls'
import type { Json } from './operator-call.ts'

/** A listener to attack. `roots`: it speaks TLS, and is verified by these. */
export type Door = {
  readonly name: string
  readonly port: number
  readonly roots: readonly string[] | null
  /** Its largest answer for a caller without proof. */
  readonly path: string
  /** Takes a body without proof. */
  readonly posts: { readonly path: string; readonly type: string }
}

export type Attackers = {
  readonly opened: () => number
  readonly closed: () => number
  stop(): void
}

export const attackKinds = [
  'pipeliners',
  'non-readers',
  'slow writers',
  'hang-ups',
  'handshake floods',
  'large bodies',
] as const
export type AttackKind = (typeof attackKinds)[number]

type Attack = (attacker: Attacker) => void
type Attacker = {
  readonly door: Door
  readonly socket: net.Socket
  readonly every: (ms: number, run: () => void) => void
}

const get = ({ path, port }: Door): string => `GET ${path} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`
const post = ({ posts, port }: Door, length: number): string =>
  `POST ${posts.path} HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: ${posts.type}\r\nContent-Length: ${length}\r\n\r\n`

const attacks: Record<AttackKind, Attack> = {
  /** 64 KiB of requests in one write, and no answer is read. */
  pipeliners: ({ door, socket }) => void socket.pause().write(get(door).repeat(Math.ceil(65_536 / get(door).length))),
  /** A request at a time, so that it is not cut off for pipelining, and no answer is read. */
  'non-readers': ({ door, socket, every }) => {
    socket.pause()
    every(20, () => void socket.write(get(door)))
  },
  'slow writers': ({ door, socket, every }) => {
    socket.resume().write(post(door, 60_000))
    every(100, () => void socket.write('x'))
  },
  'hang-ups': ({ door, socket }) =>
    void socket.resume().write(`${post(door, 2000)}{"half":`, () => socket.end().destroySoon()),
  'handshake floods': ({ socket }) => void socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])),
  /** Announced as small enough, and then more and more of it. */
  'large bodies': ({ door, socket, every }) => {
    const chunked = post(door, 0).replace('Content-Length: 0', 'Transfer-Encoding: chunked')
    socket.resume().write(chunked)
    every(5, () => void (socket.writableLength < 1_000_000 && socket.write(`4000\r\n${' '.repeat(0x4000)}\r\n`)))
  },
}

/** Keeps `count` of that kind going from one address: one that was cut off is replaced after a moment. */
export const attack = (kind: AttackKind, door: Door, from: string, count: number): Attackers => {
  const sockets = new Set<net.Socket>()
  let stopped = false
  let opened = 0
  let closed = 0
  const begin = (): void => {
    if (stopped) return
    opened += 1
    const timers: NodeJS.Timeout[] = []
    const bare = net.connect({ host: '127.0.0.1', port: door.port, localAddress: from })
    sockets.add(bare)
    bare.on('error', () => {})
    bare.once('close', () => {
      closed += 1
      timers.forEach(clearInterval)
      sockets.delete(bare)
      if (!stopped) setTimeout(begin, 50).unref()
    })
    const every = (ms: number, run: () => void): void => void timers.push(setInterval(run, ms))
    if (door.roots === null || kind === 'handshake floods')
      return void bare.once('connect', () => attacks[kind]({ door, socket: bare, every }))
    const secured = tls.connect({ socket: bare, ca: [...door.roots], servername: 'localhost' })
    secured.on('error', () => void bare.destroy())
    secured.once('close', () => void bare.destroy())
    secured.once('secureConnect', () => attacks[kind]({ door, socket: secured, every }))
  }
  for (let each = 0; each < count; each++) begin()
  return {
    opened: () => opened,
    closed: () => closed,
    stop() {
      stopped = true
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** The doors of a plane whose operators come by TLS, or by loopback HTTP; `recoveryRoots`: as an enrollment gave them. */
export const doorsOf = (
  plane: { nodeUrl: string; recoveryUrl: string; operatorUrl: string; statusUrl: string },
  roots: readonly string[],
  recoveryRoots: readonly string[],
  crlPath: string,
): readonly Door[] => {
  const portOf = (url: string): number => Number(new URL(url).port)
  const json = 'application/json'
  const operatorRoots = plane.operatorUrl.startsWith('https:') ? roots : null
  const ocsp = { path: '/ocsp', type: 'application/ocsp-request' }
  return [
    { name: 'node', port: portOf(plane.nodeUrl), roots, path: '/v1/bundle', posts: { path: '/v1/enroll', type: json } },
    {
      name: 'recovery',
      port: portOf(plane.recoveryUrl),
      roots: recoveryRoots,
      path: '/v1/none',
      posts: { path: '/v1/recover', type: json },
    },
    {
      name: 'operator',
      port: portOf(plane.operatorUrl),
      roots: operatorRoots,
      path: '/openapi.json',
      posts: { path: '/v1/tokens', type: json },
    },
    { name: 'status', port: portOf(plane.statusUrl), roots: null, path: crlPath, posts: ocsp },
  ]
}

/** The value of a metric, summed over its labels where `labels` says only some. */
export const metricOf = (text: Json, name: string, labels = ''): number => {
  const lines = String(text)
    .split('\n')
    .filter((line) => line.startsWith(name) && line.includes(labels))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}
