// How soon a revocation has taken effect everywhere: three planes over one PostgreSQL, channels on all of them, and nodes
// revoked on the first. Measured from the moment a revocation is sent to its answer, and to the moment the node sees its
// channel cut: on the plane that was asked, and on the others, in one run.
//
// One after the other; many at once; and with every notification between planes lost, where what remains is that each of
// them reads the journal once a second.
//
//     npm run bench revoke -- --nodes 300 --revocations 150

import { within } from '../test/process/eventually.ts'
import { startReplicaPlanes } from '../test/process/replica-planes.ts'
import type { Plane } from '../test/process/start-plane.ts'
import { benchRun } from './bench-run.ts'
import { startDatabaseServer, type Database } from './database.ts'
import { inParallel } from './in-parallel.ts'
import { confirm, doorAt, enroll, newMachine, openChannel, type Machine } from './machine.ts'
import { benchOptions, wrongOption } from './options.ts'

// npm takes `--nodes N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = benchOptions({
  options: { nodes: { type: 'string' }, revocations: { type: 'string' } },
  allowPositionals: true,
})
const nodes = Number(values.nodes ?? positionals[0] ?? 300)
if (!Number.isInteger(nodes) || nodes < 60) wrongOption('--nodes takes a number from 60 on')
const revocations = Number(values.revocations ?? Math.floor(nodes / 2))
if (!Number.isInteger(revocations) || revocations < 10 || revocations > nodes / 2)
  wrongOption('--revocations takes a number from 10 to half of the nodes: others are revoked at once')

const planes = 3
const aimMs = 1000
const cutWithinMs = 30_000
const atOnce = Math.floor(nodes / 6)
const silent = Math.floor(nodes / 5)
/** So that they fall into every part of the second between two looks. */
const silentEveryMs = 37

type Held = { readonly machine: Machine; readonly on: number }
type Sample = { readonly on: number; readonly answerMs: number; readonly cutMs: number }

await benchRun(async (t) => {
  const database = await (await startDatabaseServer(t))(t)
  const hush = await mutedOnDemand(database)
  const replicas = await startReplicaPlanes(t, planes, database.env, { args: ['--log-level', 'warn'] })
  const [asked] = replicas
  if (asked === undefined) throw new Error('there is no plane')
  const held = await openChannels(replicas, asked)
  console.log(
    `revoke: ${nodes} channels spread over ${planes} planes and one PostgreSQL; nodes are revoked on the first`,
  )

  const alone: Sample[] = []
  for (const one of held.splice(0, revocations)) alone.push(await revoke(asked, one))
  printSamples('one after the other', alone)

  const burst = held.splice(0, atOnce)
  printSamples(`${burst.length} at once`, await Promise.all(burst.map((one) => revoke(asked, one))))

  await hush()
  const deaf = held.splice(0, silent).map(async (one, at) => {
    await new Promise((resolve) => setTimeout(resolve, at * silentEveryMs))
    return revoke(asked, one)
  })
  printSamples('with every notification lost', await Promise.all(deaf))
  console.log(
    `\nstill open       ${held.filter(({ machine }) => machine.socket?.destroyed === false).length} of ${held.length} that were not revoked`,
  )
})

/** Nodes of the first plane and of the others in turns, so that any part of the list has both. */
async function openChannels(replicas: readonly Plane[], tokensFrom: Plane): Promise<Held[]> {
  const { roots } = await tokensFrom.target()
  const doors = replicas.map(({ nodeUrl }) => doorAt(nodeUrl, roots[0] ?? ''))
  const held: Held[] = Array.from({ length: nodes })
  await inParallel(32, nodes, async (at) => {
    const on = at % 2 === 0 ? 0 : 1 + (Math.floor(at / 2) % (planes - 1))
    const door = doors[on]
    if (door === undefined) throw new Error('there is no such plane')
    const { status, body } = await tokensFrom.api('POST', '/v1/tokens', { node: `revoke-${at}` })
    if (status >= 300) throw new Error(`no token: ${JSON.stringify(body)}`)
    const machine = newMachine(`revoke-${at}`, body.secret)
    await enroll(door, machine)
    await confirm(door, machine)
    await openChannel(door, machine)
    held[at] = { machine, on }
  })
  return held
}

async function revoke(plane: Plane, { machine, on }: Held): Promise<Sample> {
  const sentMs = performance.now()
  const cut = new Promise<number>((resolve) => {
    for (const event of ['end', 'close']) machine.socket?.once(event, () => resolve(performance.now() - sentMs))
  })
  const answered = plane
    .api('POST', `/v1/nodes/${machine.id}/revoke`, { reason: 'measured' })
    .then(({ status, body }) => {
      if (status >= 300) throw new Error(`not revoked: ${status} ${JSON.stringify(body)}`)
      return performance.now() - sentMs
    })
  const [answerMs, cutMs] = await within(`${machine.id} to be cut`, cutWithinMs, Promise.all([answered, cut]))
  return { on, answerMs, cutMs }
}

/**
 * The planes call a function of this database instead of the server's own, which passes notifications on until the returned
 * function is called: then none arrives anywhere, as if a pooler stood between.
 */
async function mutedOnDemand(database: Database): Promise<() => Promise<void>> {
  const connection = await database.connect()
  const define = (body: string): Promise<void> =>
    connection.exec(`CREATE OR REPLACE FUNCTION public.pg_notify(channel text, payload text) RETURNS void
      LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`)
  await define('PERFORM pg_catalog.pg_notify(channel, payload);')
  await connection.exec(`ALTER DATABASE ${database.env.PGDATABASE} SET search_path = public, pg_catalog`)
  return () => define('NULL;')
}

function printSamples(how: string, samples: readonly Sample[]): void {
  const of = (want: (sample: Sample) => boolean, time: 'answerMs' | 'cutMs'): Times => {
    const sorted = samples
      .filter(want)
      .map((sample) => sample[time])
      .toSorted((a, b) => a - b)
    const at = (share: number): number =>
      sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? NaN
    return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
  }
  const here = of(({ on }) => on === 0, 'cutMs')
  const elsewhere = of(({ on }) => on !== 0, 'cutMs')
  console.log(`\n${how}`)
  printTimes(
    'answer',
    of(() => true, 'answerMs'),
  )
  printTimes('cut, same plane', here)
  printTimes('cut, others', elsewhere)
  const ratio = elsewhere.p50 / here.p50
  console.log(
    `ratio            ${ratio.toFixed(2)} others to same plane, in the median; ${(elsewhere.p99 / here.p99).toFixed(2)} at p99`,
  )
  const worst = of(() => true, 'cutMs')
  console.log(`within 1 s       ${worst.p99 <= aimMs ? 'yes' : 'no'} (p99 of all ${worst.p99.toFixed(0)} ms)`)
}

type Times = { readonly count: number; readonly p50: number; readonly p99: number; readonly max: number }

function printTimes(label: string, { count, p50, p99, max }: Times): void {
  const figures = `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${max.toFixed(1)} ms`
  console.log(`${label.padEnd(16)} ${figures} (${count})`)
}
