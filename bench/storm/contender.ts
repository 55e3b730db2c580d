// A plane in the storm, with machines of its own in another process, and what each thing they do costs every process.

import { cleanup, type Scope } from '../../test/process/cleanup.ts'
import type { Database } from '../database.ts'
import { startLoadClient, type Order } from '../load-client.ts'
import { makeTokens, startPlane, type PlaneProcess } from '../plane-process.ts'
import { cpuMs, machineCpuMs } from '../process-cost.ts'

export type Contender = {
  readonly name: string
  readonly plane: PlaneProcess
  readonly replicas: number
  /** What every process spends while the machines do one thing. */
  run(order: Order): Promise<Phase>
}

export type Phase = {
  readonly done: number
  /** Wall clock. */
  readonly ms: number
  readonly failures: readonly string[]
  readonly cpuMs: Cost
}

/** Milliseconds of CPU. `machine`: of everything that ran on it. */
export type Cost = Readonly<Record<'plane' | 'database' | 'client' | 'machine', number>>

export const noPhase: Phase = {
  done: 0,
  ms: 0,
  failures: [],
  cpuMs: { plane: 0, database: 0, client: 0, machine: 0 },
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
  client: cost('client'),
  machine: cost('machine'),
})

/** `database` null: the embedded store. `options`: further ones of the plane. */
export type Entrant = {
  readonly name: string
  readonly database: Database | null
  readonly replicas: number
  readonly options: readonly string[]
}

/** With `count` machines, each of which has its own key, request and token. */
export const startContender = async (t: Scope, entrant: Entrant, count: number): Promise<Contender> => {
  const { name, database, replicas, options } = entrant
  const plane = await startPlane(
    database === null ? { kind: 'sqlite' } : { kind: 'postgres', env: database.env, replicas },
    null,
    options,
  )
  cleanup(t, () => plane.stop())
  const client = await startLoadClient(t)
  const { host: address, hostname } = new URL(plane.nodeUrl)
  await client.ask({ do: 'connect', server: 'muster', address, name: hostname, roots: plane.rootPem })
  const secrets = await makeTokens(plane, count)
  await client.ask({ do: 'machines', names: secrets.map((_, at) => `storm-${at}`), secrets })
  const cost = (): Cost => ({
    plane: plane.cpuMs(),
    database: database === null ? 0 : database.cpuMs(),
    client: cpuMs(client.pid),
    machine: machineCpuMs(),
  })
  return {
    name,
    plane,
    replicas,
    async run(order) {
      const before = cost()
      const { done, ms, failures } = await client.ask(order)
      const after = cost()
      if (order.do === 'enroll' && failures === null) await client.check(order.from, order.to)
      return { done, ms, failures: failures ?? [], cpuMs: each((who) => after[who] - before[who]) }
    },
  }
}
