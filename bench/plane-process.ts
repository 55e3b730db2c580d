// A real plane in a process of its own, and what it costs: CPU of all its threads, and memory after a collection.

import { spawn, type ChildProcess } from 'node:child_process'
import * as fs from 'node:fs'
import * as http from 'node:http'
import * as os from 'node:os'
import * as path from 'node:path'
import { descendantsOf } from '../test/process/process-tree.ts'
import { ownResidentBytes } from '../test/process/resident-memory.ts'
import { freePort } from '../test/process/free-port.ts'
import { inParallel } from './in-parallel.ts'
import { cpuMs } from './process-cost.ts'

const root = path.resolve(import.meta.dirname, '..')

export type PlaneProcess = {
  readonly pid: number
  readonly nodeUrl: string
  readonly rootPem: string
  /** From nothing to ready. */
  readonly start: { readonly ms: number; readonly cpuMs: number }
  readonly call: (method: string, route: string, body?: object) => Promise<Record<string, unknown>>
  /** Milliseconds of CPU so far, user and system, all threads and replicas. */
  readonly cpuMs: () => number
  /** Resident bytes after a full collection, without what is mapped of files. */
  readonly settledBytes: () => Promise<number>
  readonly stop: () => Promise<void>
}

export type PlaneStore =
  | { readonly kind: 'sqlite' }
  | { readonly kind: 'postgres'; readonly env: Readonly<Record<string, string>>; readonly replicas: number }

/** `folder`: there before and after; left out: one of its own, which goes with it. `options`: further ones of the plane. */
export const startPlane = async (
  store: PlaneStore = { kind: 'sqlite' },
  folder: string | null = null,
  options: readonly string[] = [],
): Promise<PlaneProcess> => {
  const data = folder ?? fs.mkdtempSync(path.join(os.tmpdir(), 'muster-bench-'))
  // MUSTER_BENCH_NODE=--cpu-prof and the like look into a run.
  const extra = process.env['MUSTER_BENCH_NODE']?.split(' ') ?? []
  const args = [...extra, '--expose-gc', '--import', path.join(import.meta.dirname, 'collect-on-signal.ts')]
  const muster = [path.join(root, 'bin/muster.ts'), 'plane', '-o', 'json', '--data', data, '--log-level', 'warn']
  const replicas = store.kind === 'sqlite' ? 1 : store.replicas
  const shared = store.kind === 'sqlite' ? [] : ['--store', 'postgres', '--replicas', String(replicas)]
  const listen: string[] = []
  for (const door of ['node', 'recovery', 'operator', 'status'])
    listen.push(`--${door}-listen`, `127.0.0.1:${replicas === 1 ? 0 : await freePort()}`)
  const child = spawn(process.execPath, [...args, ...muster, ...listen, ...shared, ...options], {
    env: { ...process.env, ...(store.kind === 'postgres' ? store.env : {}) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const pid = child.pid!
  const remove = (): void => {
    child.kill('SIGKILL')
    if (folder === null) fs.rmSync(data, { recursive: true, force: true, maxRetries: 3 })
  }
  const startedMs = performance.now()
  process.once('exit', remove)
  const ready = await firstLine(child)
  const start = { ms: performance.now() - startedMs, cpuMs: cpuMs(pid) }
  const key = fs.readFileSync(path.join(data, 'admin.key'), 'utf8').trim()
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
  const call = (method: string, route: string, body?: object) =>
    operatorCall({ agent, socketPath: ready.socket, key }, method, route, body)
  const bundle = await call('GET', '/v1/ca/bundle')

  return {
    pid,
    nodeUrl: ready.node_url,
    rootPem: (bundle['roots'] as string[])[0]!,
    start,
    call,
    cpuMs: () => cpuMs(pid),
    async settledBytes() {
      for (let i = 0; i < 3; i++) {
        for (const one of descendantsOf([pid])) process.kill(one, 'SIGUSR2')
        await new Promise((resolve) => setTimeout(resolve, 400))
      }
      return descendantsOf([pid]).reduce((sum, one) => sum + ownResidentBytes(one), 0)
    },
    async stop() {
      agent.destroy()
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGTERM')) await ended
      process.off('exit', remove)
      remove()
    },
  }
}

/** A token for each of so many nodes. */
export const makeTokens = async (plane: PlaneProcess, count: number): Promise<string[]> => {
  const secrets: string[] = Array.from({ length: count })
  await inParallel(16, count, async (at) => {
    const node = `storm-${String(at).padStart(6, '0')}`
    const made = await plane.call('POST', '/v1/tokens', { node, expires_ms: 86_400_000 })
    secrets[at] = made['secret'] as string
  })
  return secrets
}

type Ready = { node_url: string; socket: string }

const firstLine = (child: ChildProcess): Promise<Ready> =>
  new Promise((resolve, reject) => {
    let text = ''
    child.once('exit', (code) => reject(new Error(`the plane ended with ${code} before it was ready`)))
    child.stdout!.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const end = text.indexOf('\n')
      if (end >= 0) resolve(JSON.parse(text.slice(0, end)) as Ready)
    })
  })

type Operator = { agent: http.Agent; socketPath: string; key: string }

const operatorCall = (operator: Operator, method: string, route: string, body?: object) =>
  new Promise<Record<string, unknown>>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${operator.key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const { agent, socketPath } = operator
    const request = http.request({ agent, socketPath, method, path: route, headers }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => {
        if (response.statusCode! >= 300) return reject(new Error(`${method} ${route}: ${response.statusCode} ${text}`))
        resolve(JSON.parse(text) as Record<string, unknown>)
      })
    })
    request.on('error', reject)
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })
