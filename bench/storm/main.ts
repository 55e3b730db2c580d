// A boot storm: every node with its own key, request and TLS connections, against a real plane in another process. A node
// enrolls on one connection and opens its channel on the next, which is the first use of its certificate; with `--confirm` it
// confirms before, as agents of 0.3.0 do. A plane with TLS on its main thread stands beside the default one; with
// `--store postgres` one over a PostgreSQL of its own instead, and with `--replicas` a third of so many processes. They take turns in
// one run, so that whatever else the machine does befalls all of them.
//
//     npm run bench storm -- --nodes 10000
//     npm run bench storm -- --confirm
//     npm run bench storm -- --store postgres
//     npm run bench storm -- --store postgres --replicas 3

import type { Scope } from '../../test/process/cleanup.ts'
import { benchRun } from '../bench-run.ts'
import { startDatabaseServer } from '../database.ts'
import { noPhase, startContender, together, type Contender, type Entrant } from './contender.ts'
import { untilIdle } from '../process-cost.ts'
import { printAgainst, printOutcome, type Outcome } from './print-storm.ts'
import { benchOptions, wrongOption } from '../options.ts'

// npm takes `--nodes N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = benchOptions({
  options: {
    nodes: { type: 'string' },
    store: { type: 'string' },
    replicas: { type: 'string' },
    confirm: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const nodes = Number(values.nodes ?? positionals[0] ?? 2000)
if (!Number.isInteger(nodes) || nodes < 20) wrongOption('--nodes takes a number from 20 on')
const store = values.store ?? 'sqlite'
if (store !== 'sqlite' && store !== 'postgres') wrongOption('--store takes sqlite or postgres')
const replicas = Number(values.replicas ?? 1)
if (!Number.isInteger(replicas) || replicas < 1 || replicas > 8) wrongOption('--replicas takes a number from 1 to 8')
if (replicas > 1 && store === 'sqlite') wrongOption('--replicas needs --store postgres')

const atOnce = 64
/** The first of each pay for compilation, which a plane does once and a storm does not repeat. They go the whole way. */
const warmUpEach = 1500
const steps = 4

await benchRun(async (t) => {
  const contenders: Contender[] = []
  for (const entrant of await entrants(t))
    contenders.push(await startContender(t, entrant, nodes + warmUpEach * entrant.replicas))
  const names = contenders.map(({ name }) => name).join(', ')
  console.log(`storm: ${nodes} nodes each, machines in another process: ${names}`)
  const outcomes = await storm(contenders)
  for (const outcome of outcomes) printOutcome(outcome, nodes)
  for (const [at, before] of outcomes.slice(0, -1).entries()) printAgainst(outcomes[at + 1]!, before)
  const phases = outcomes.flatMap(({ enroll, confirm, channel }) => [enroll, confirm, channel])
  if (phases.some(({ failures }) => failures.length > 0)) process.exitCode = 1
})

async function entrants(t: Scope): Promise<readonly Entrant[]> {
  const embedded = { name: 'SQLite', database: null, replicas: 1, options: [] }
  if (store === 'sqlite')
    return [{ ...embedded, name: 'SQLite, one thread', options: ['--tls-threads', '0'] }, embedded]
  const newDatabase = await startDatabaseServer(t)
  const shared = { name: 'PostgreSQL', database: await newDatabase(t), replicas: 1, options: [] }
  if (replicas === 1) return [embedded, shared]
  const several = { ...shared, name: `PostgreSQL, ${replicas} planes`, database: await newDatabase(t), replicas }
  return [embedded, shared, several]
}

async function storm(contenders: readonly Contender[]): Promise<readonly Outcome[]> {
  const running = contenders.map((contender) => ({
    contender,
    warmUp: warmUpEach * contender.replicas,
    ...{ bare: noPhase, enroll: noPhase, confirm: noPhase, channel: noPhase },
  }))
  const inTurns = async (run: (one: (typeof running)[number], step: number) => Promise<void>): Promise<void> => {
    for (let step = 0; step < steps; step++) for (const one of running) await run(one, step)
  }
  const part = (count: number, step: number): number => Math.floor((count * step) / steps)

  const keep = false
  const afterEnrolling = values.confirm ? (['confirm', 'channel'] as const) : (['channel'] as const)
  for (const { contender, warmUp } of running) {
    await contender.run({ do: 'handshakes', count: warmUp, at_once: atOnce })
    await contender.run({ do: 'enroll', from: 0, to: warmUp, at_once: atOnce, keep })
    for (const what of afterEnrolling) await contender.run({ do: what, from: 0, to: warmUp, at_once: atOnce })
  }
  for (const { contender } of running) await untilIdle(contender.plane.cpuMs)
  await inTurns(async (one, step) => {
    const [from, to] = [one.warmUp + part(nodes, step), one.warmUp + part(nodes, step + 1)]
    one.bare = together(one.bare, await one.contender.run({ do: 'handshakes', count: to - from, at_once: atOnce }))
    one.enroll = together(one.enroll, await one.contender.run({ do: 'enroll', from, to, at_once: atOnce, keep }))
  })
  for (const what of afterEnrolling)
    await inTurns(async (one, step) => {
      const [from, to] = [one.warmUp + part(nodes, step), one.warmUp + part(nodes, step + 1)]
      one[what] = together(one[what], await one.contender.run({ do: what, from, to, at_once: atOnce }))
    })
  return running.map(({ contender, bare, enroll, confirm, channel }) => ({
    name: contender.name,
    ...{ bare, enroll, confirm, channel },
  }))
}
