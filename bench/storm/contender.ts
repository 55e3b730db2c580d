// A plane in the storm, with machines of its own in another process, and what each thing they do costs every process.

import { fork } from 'node:child_process'
import * as path from 'node:path'
import { cleanup, type Scope } from '../../test/process/cleanup.ts'
import { within } from '../../test/process/eventually.ts'
import type { Database } from '../database.ts'
import { inParallel } from '../in-parallel.ts'
import { startPlane, type PlaneProcess } from '../plane-process.ts'
import { cpuMs, machineCpuMs } from '../process-cost.ts'
import type { Order, Report } from './generator.ts'

export type Contender = {
  readonly name: string
  readonly replicas: number
  /** What every process spends while the machines do one thing. */
  run(order: Order): Promise<Phase>
  settledBytes(): Promise<number>
}

export type Phase = Pick<Report, 'done' | 'ms' | 'failures'> & { readonly cpuMs: Cost }

/** Milliseconds of CPU. `machine`: of everything that ran on it. */
export type Cost = Readonly<Record<'plane' | 'database' | 'generator' | 'machine', number>>

export const noPhase: Phase = {
  done: 0,
  ms: 0,
  failures: [],
  cpuMs: { plane: 0, database: 0, generator: 0, machine: 0 },
}

export const together = (one: Phase, other: Phase): Phase => ({
  done: one.done + other.done,
  ms: one.ms + other.ms,
  failures: [...one.failures, ...other.failures],
  cpuMs: each((who) => one.cpuMs[who] + other.cpuMs[who]),
})

const each = (cost: (who: keyof Cost) => number): Cost => ({
  plane: cost('plane'),
  database: cost('database'),
  generator: cost('generator'),
  machine: cost('machine'),
})

/** `database` null: the embedded store. */
export type Entrant = { readonly name: string; readonly database: Database | null; readonly replicas: number }

/** Enough for a machine that is busy with other things, and an end all the same. */
const withinMs = (count: number): number => 60_000 + 100 * count

/** With `count` machines, each of which has its own key, request and token. */
export const startContender = async (t: Scope, entrant: Entrant, count: number): Promise<Contender> => {
  const { name, database, replicas } = entrant
  const plane = await startPlane(
    database === null ? { kind: 'sqlite' } : { kind: 'postgres', env: database.env, replicas },
  )
  cleanup(t, () => plane.stop())
  const generator = fork(path.join(import.meta.dirname, 'generator.ts'))
  cleanup(t, () => void generator.kill())
  const ended = new Promise<never>((_, reject) => {
    generator.once('exit', (code) => reject(new Error(`the load generator ended with ${code}`)))
  })
  ended.catch(() => {})

  const ask = (order: Order): Promise<Report> => {
    const answered = new Promise<Report>((resolve) => generator.once('message', (report) => resolve(report as Report)))
    generator.send(order)
    return within(`${name}: ${order.kind}`, withinMs(count), Promise.race([answered, ended]))
  }
  const cost = (): Cost => ({
    plane: plane.cpuMs(),
    database: database === null ? 0 : database.cpuMs(),
    generator: cpuMs(generator.pid!),
    machine: machineCpuMs(),
  })
  const secrets = await makeTokens(plane, count)
  await ask({ kind: 'prepare', nodeUrl: plane.nodeUrl, rootPem: plane.rootPem, secrets })
  return {
    name,
    replicas,
    async run(order) {
      const before = cost()
      const { done, ms, failures } = await ask(order)
      const after = cost()
      return { done, ms, failures, cpuMs: each((who) => after[who] - before[who]) }
    },
    settledBytes: () => plane.settledBytes(),
  }
}

const makeTokens = async (plane: PlaneProcess, count: number): Promise<string[]> => {
  const secrets: string[] = Array.from({ length: count })
  await inParallel(16, count, async (at) => {
    const node = `storm-${String(at).padStart(6, '0')}`
    const made = await plane.call('POST', '/v1/tokens', { node, expires_ms: 86_400_000 })
    secrets[at] = made['secret'] as string
  })
  return secrets
}
