// A real plane in a process of its own.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { startedCommand, startChild, type Child, type ChildOptions } from './child.ts'
import type { Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import { musterHere } from './muster-here.ts'
import type { NodeTarget } from './node-call.ts'
import { freePort } from './free-port.ts'
import { operatorCall, type Reply } from './operator-call.ts'
import { runMuster, type Ran, type RunOptions } from './run-muster.ts'
import { onPostgres, storeEnvironment } from './store-under-test.ts'
import { tempFolder } from './temp-folder.ts'

export type PlaneOptions = Omit<ChildOptions, 'input'> & {
  /** Its data folder; left out: a new one that is gone after the test. */
  readonly data?: string
  readonly nodeListen?: string
  readonly recoveryListen?: string
  readonly operatorListen?: string
  readonly statusListen?: string
  readonly args?: readonly string[]
  readonly readyWithinMs?: number
}

export type Plane = Pick<Child, 'pid' | 'ended' | 'running' | 'stop' | 'kill9' | 'signal' | 'stdout' | 'stderr'> & {
  readonly data: string
  /** As the plane names them. */
  readonly nodeUrl: string
  readonly recoveryUrl: string
  readonly operatorUrl: string
  readonly statusUrl: string
  readonly socket: string
  readonly domain: string
  readonly rootFingerprint: string
  readonly nodePort: number
  readonly adminKey: string
  /** An operator's call over the Unix socket, with the administrator's key. */
  api(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<Reply>
  /** The CLI, talking to this plane, in this process. */
  muster(...args: string[]): Promise<Ran>
  /** The CLI in a process of its own. */
  musterWith(options: RunOptions, ...args: string[]): Promise<Ran>
  /** What a raw node connects to, verified by the domain's roots; through a proxy when its port is given. */
  target(port?: number): Promise<NodeTarget>
  /** The join string of a new token. */
  token(...args: string[]): Promise<string>
  /** After `stop` or `kill9`: the same data, the same addresses. */
  restart(changes?: PlaneOptions): Promise<Plane>
}

/** What `muster plane -o json` prints once it is ready, on one line. */
type Banner = {
  node_url: string
  recovery_url: string
  operator_url: string
  status_url: string
  socket: string
  root_fingerprint: string
  domain: string
  data: string
}

export const startPlane = async (t: Scope, options: PlaneOptions = {}): Promise<Plane> => {
  const data = options.data ?? path.join(tempFolder(t), 'data')
  const args = [
    'plane',
    '--data',
    data,
    '--node-listen',
    options.nodeListen ?? `127.0.0.1:${await freePort()}`,
    '--recovery-listen',
    options.recoveryListen ?? `127.0.0.1:${await freePort()}`,
    '--operator-listen',
    options.operatorListen ?? `127.0.0.1:${await freePort()}`,
    '--status-listen',
    options.statusListen ?? `127.0.0.1:${await freePort()}`,
    '-o',
    'json',
    ...(options.args ?? []),
  ]
  const store = await storeEnvironment(t, data)
  // A test that moves the time of a plane does not move the database's: that the two differ is not what it is about.
  const moved = onPostgres() && options.env?.['FAKETIME_TIMESTAMP_FILE'] !== undefined
  const tolerance = moved ? { MUSTER_CLOCK_TOLERANCE: '36500d' } : {}
  const child = startChild(t, options.command ?? startedCommand, args, {
    ...options,
    env: { ...store, ...tolerance, ...options.env },
  })
  const banner = await readBanner(child, options.readyWithinMs ?? 30_000)
  if (onPostgres()) assert(!fs.existsSync(path.join(data, 'muster.db')), 'the plane uses the embedded store')
  const adminKey = fs.readFileSync(path.join(data, 'admin.key'), 'utf8').trim()
  const musterWith = (run: RunOptions, ...given: string[]): Promise<Ran> =>
    runMuster(given, { ...run, env: { MUSTER_DATA: data, ...store, ...run.env } })
  const muster = (...given: string[]): Promise<Ran> => musterHere(given, { env: { MUSTER_DATA: data, ...store } })
  return {
    ...child,
    data,
    nodeUrl: banner.node_url,
    recoveryUrl: banner.recovery_url,
    operatorUrl: banner.operator_url,
    statusUrl: banner.status_url,
    socket: banner.socket,
    domain: banner.domain,
    rootFingerprint: banner.root_fingerprint.replace(/^sha256:/, ''),
    nodePort: Number(new URL(banner.node_url).port),
    adminKey,
    api: (method, where, body) => operatorCall(banner.socket, adminKey, method, where, body),
    muster,
    musterWith,
    async target(port) {
      const url = new URL(banner.node_url)
      const bundle = await operatorCall(banner.socket, adminKey, 'GET', '/v1/ca/bundle')
      if (port !== undefined) url.port = String(port)
      return { url: url.origin, roots: bundle.body.roots }
    },
    async token(...given) {
      const { code, stdout, stderr } = await muster('token', 'create', ...given)
      if (code !== 0) throw new Error(`token create ${given.join(' ')} failed: ${stderr}`)
      return stdout.trim()
    },
    restart: (changes = {}) =>
      startPlane(t, {
        ...options,
        data,
        nodeListen: hostAndPort(options.nodeListen, banner.node_url),
        recoveryListen: hostAndPort(options.recoveryListen, banner.recovery_url),
        operatorListen: hostAndPort(options.operatorListen, banner.operator_url),
        statusListen: hostAndPort(options.statusListen, banner.status_url),
        ...changes,
      }),
  }
}

const hostAndPort = (listen: string | undefined, url: string): string =>
  `${(listen ?? '127.0.0.1:0').replace(/:\d+$/, '')}:${new URL(url).port}`

const readBanner = async (child: Child, withinMs: number): Promise<Banner> => {
  const line = await eventually(
    'the plane to be ready',
    () => firstJsonLine(child.stdout()) ?? (child.running() ? null : 'ended'),
    { withinMs },
  ).catch((error: unknown) => {
    throw new Error(`the plane did not become ready:\n${child.stdout()}${child.stderr()}`, { cause: error })
  })
  if (line === 'ended') throw new Error(`the plane ended before it was ready:\n${child.stdout()}${child.stderr()}`)
  return JSON.parse(line) as Banner
}

const firstJsonLine = (text: string): string | null =>
  text
    .split('\n')
    .slice(0, -1)
    .find((line) => line.startsWith('{')) ?? null
