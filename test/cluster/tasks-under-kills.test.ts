// Tasks for many hosts over three planes, while planes, agents and helpers are killed one after the other: each program is started at
// most once, as the hosts themselves have it, and nothing that was acknowledged is lost on either side.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Random } from '#platform/random.ts'
import { inParallel } from '../../bench/in-parallel.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { fairNowMs } from '../process/fair-time.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import type { Plane } from '../process/start-plane.ts'
import { startTaskCrowd, type TaskCrowd } from '../process/task-crowd.ts'
import { startTaskHost, type RememberedTask, type TaskHost } from '../process/task-host.ts'
import { withSeed } from '../process/with-seed.ts'
import { startPlanesBehindOne, untilReady, waitMs, type PlanesBehindOne } from './three-planes.ts'

const long = process.env['MUSTER_LONG'] === '1'
/** Agents in processes of their own, with helpers in processes of their own. */
const agents = { count: 3, tasks: long ? 600 : 200 }
const crowd = long ? { count: 500, processes: 10, tasks: 10_000 } : { count: 6, processes: 1, tasks: 60 }
const kills = long ? 60 : 8
const queuedAtOnce = 8
const retryMs = 200
const patienceMs = 90_000

/** Kept in the order in which they are killed. */
type Victim = { readonly what: string; kill(): Promise<void> }

/** A task by its number, which its program writes down. */
type Queued = { readonly number: string; readonly id: string }

type World = {
  readonly cluster: PlanesBehindOne
  /** As they are now: those that are killed are replaced. */
  readonly planes: Plane[]
  readonly hosts: readonly TaskHost[]
  readonly crowd: TaskCrowd
}

const startWorld = async (t: TestContext): Promise<World> => {
  const cluster = await startPlanesBehindOne(t, { set: { 'tasks.run': true } })
  const { doors } = cluster
  const hosts: TaskHost[] = []
  for (let number = 0; number < agents.count; number++) {
    const door = doors[number % doors.length] ?? doors[0]
    hosts.push(await startTaskHost(t, door.plane, `host-${number}`))
  }
  const nodes = await startTaskCrowd(t, doors, { prefix: 'node', ...crowd })
  return { cluster, planes: doors.map(({ plane }) => plane), hosts, crowd: nodes }
}

const randomPlane = ({ planes }: World, random: Random): Plane =>
  planes[Math.floor(random.unit() * planes.length)] ?? assert.fail('there are no planes')

/** Asks again, at any plane, until it is answered: what is acknowledged is one task, however often it was asked for. */
const queueOne = async (world: World, random: Random, node: string, number: string): Promise<Queued> => {
  const parameters = { name: 'note', arguments: [number] }
  const body = { node, type: 'run', parameters, expires_in_ms: 23 * 3_600_000, idempotency_key: number }
  for (const untilMs = fairNowMs() + patienceMs; ;) {
    const reply = await randomPlane(world, random)
      .api('POST', '/v1/tasks', body)
      .catch((error: unknown) => String(error))
    if (typeof reply !== 'string' && reply.status < 300) return { number, id: reply.body.id }
    const mayPass = typeof reply === 'string' || reply.status === 503
    if (!mayPass || fairNowMs() > untilMs) assert.fail(`${number} was not queued: ${JSON.stringify(reply)}`)
    await waitMs(retryMs)
  }
}

/** For which node each task is: those of the agents and of the others mixed, from the first to the last. */
const nodesOfTasks = ({ hosts, crowd: nodes }: World): readonly string[] => {
  const spread = (ids: readonly string[], count: number) =>
    Array.from({ length: count }, (_, at) => ({ node: ids[at % ids.length] ?? '', place: at / count }))
  return [
    ...spread(
      hosts.map(({ id }) => id),
      agents.tasks,
    ),
    ...spread(nodes.ids, crowd.tasks),
  ]
    .toSorted((one, other) => one.place - other.place)
    .map(({ node }) => node)
}

const queueAll = async (world: World, random: Random): Promise<readonly Queued[]> => {
  const nodes = nodesOfTasks(world)
  const queued: Queued[] = []
  await inParallel(queuedAtOnce, nodes.length, async (at) => {
    queued.push(await queueOne(world, random, nodes[at] ?? '', `task-${at}`))
  })
  return queued
}

const victimsOf = ({ planes, hosts, crowd: nodes }: World): readonly Victim[] => {
  const replace = async (at: number): Promise<void> => {
    const plane = planes[at] ?? assert.fail()
    await plane.kill9()
    planes[at] = await plane.restart()
    await untilReady(planes[at])
  }
  const victims: Victim[] = []
  const rounds = Math.max(planes.length, hosts.length, nodes.processes)
  for (let round = 0; round < rounds; round++) {
    const host = hosts[round % hosts.length] ?? assert.fail()
    victims.push(
      { what: `plane ${round % planes.length}`, kill: () => replace(round % planes.length) },
      { what: `the agent of ${host.id}`, kill: () => host.killAgent() },
      { what: `process ${round % nodes.processes} of the nodes`, kill: () => nodes.kill(round % nodes.processes) },
      { what: `the helper of ${host.id}`, kill: () => host.killHelper() },
    )
  }
  return victims
}

const countEnded = async ({ cluster }: World): Promise<number> => {
  const [row] = await cluster.tables.rows(
    "SELECT count(*) AS ended FROM task WHERE state NOT IN ('queued', 'dispatched')",
  )
  return Number(row?.['ended'])
}

/** Whenever so many more tasks have ended the next one is killed, until there are no more steps. */
const killThroughout = async (world: World, say: (what: string) => void): Promise<void> => {
  const victims = victimsOf(world)
  const step = Math.floor((agents.tasks + crowd.tasks) / (kills + 2))
  for (let kill = 0; kill < kills; kill++) {
    const { what, kill: run } = victims[kill % victims.length] ?? assert.fail()
    await eventually(
      `${(kill + 1) * step} tasks to have ended, before ${what} is killed`,
      async () => {
        return (await countEnded(world)) >= (kill + 1) * step
      },
      { withinMs: patienceMs },
    )
    say(what)
    await run()
  }
}

const openIn = async (plane: Plane): Promise<Json[]> =>
  (
    await Promise.all(['queued', 'dispatched'].map((state) => plane.api('GET', `/v1/tasks?state=${state}&limit=1`)))
  ).flatMap(({ body }) => body.tasks)

test(`${agents.tasks} tasks for ${agents.count} agents and ${crowd.tasks} for ${crowd.count} nodes over three planes, with ${kills} kills: none runs twice, none is lost`, async (t) => {
  if (withPeer(t, 'postgres') === null) return
  await withSeed(async (random) => {
    const world = await startWorld(t)
    const killed: string[] = []
    const killing = killThroughout(world, (what) => void killed.push(what))
    const queued = await Promise.all([queueAll(world, random), killing]).then(([done]) => done)
    const [plane] = world.planes
    assert(plane !== undefined)
    await eventually('every task to have ended', async () => (await openIn(plane)).length === 0, {
      withinMs: patienceMs,
    })
    const remembered = (): RememberedTask[] => [
      ...world.hosts.flatMap((host) => host.remembered()),
      ...world.crowd.remembered(),
    ]
    await eventually('every result to be acknowledged', () => remembered().every(({ forgotten }) => forgotten), {
      withinMs: patienceMs,
    })
    const unknown = await checkTasks(world, queued, remembered())
    await checkJournal(plane, queued)
    t.diagnostic(`killed: ${killed.join(', ')}; ${unknown} of ${queued.length} tasks were interrupted and are unknown`)
  })
})

/** As the hosts have it against what the plane says. How many are unknown. */
const checkTasks = async (
  { cluster, hosts, crowd: nodes }: World,
  queued: readonly Queued[],
  remembered: readonly RememberedTask[],
): Promise<number> => {
  const runs = Map.groupBy([...hosts.flatMap((host) => host.noted()), ...nodes.noted()], (number) => number)
  const ofHosts = new Set(remembered.map(({ id }) => id))
  const rows = await cluster.tables.rows('SELECT doc FROM task')
  const docs: Json[] = rows.map(({ doc }) => JSON.parse(String(doc)))
  const tasks = new Map(docs.map((task) => [task.id, task]))
  assert.equal(tasks.size, queued.length, 'the same task was queued once, however often it was asked for')
  let unknown = 0
  for (const { number, id } of queued) {
    const { state } = tasks.get(id) ?? assert.fail(`${number} (${id}) was acknowledged and is not there`)
    const told = `${number} (${id}): ${JSON.stringify(state)}`
    const ran = runs.get(number)?.length ?? 0
    assert.ok(ofHosts.has(id), `no host has begun it: ${told}`)
    if (state.kind === 'completed') assert.deepEqual([ran, state.result.exitCode], [1, 0], told)
    else {
      assert.deepEqual([state.kind, state.result?.code], ['unknown', 'INTERRUPTED'], told)
      assert.ok(ran <= 1, `it was started ${ran} times: ${told}`)
      unknown++
    }
  }
  assert.deepEqual(nodes.refusals(), [])
  const counters = Map.groupBy(new Set(nodes.envelopes()), (line) => line.split(' ')[0])
  const several = [...counters.values()].filter((lines) => lines.length > 1)
  assert.deepEqual(several, [], 'a task that is sent again has the counter of its one dispatch')
  assert.ok(unknown < queued.length / 4, `${unknown} of ${queued.length} tasks were interrupted`)
  return unknown
}

const checkJournal = async (plane: Plane, queued: readonly Queued[]): Promise<void> => {
  const wanted = queued.map(({ id }) => id).toSorted()
  // Asked again: a replica that got no processor for ten seconds says that it is behind.
  const entriesOf = (type: string): Promise<readonly Json[]> =>
    eventually(`the journal to answer for ${type}`, () => journalEntries(plane, { type }), { withinMs: patienceMs })
  const told = async (...types: string[]): Promise<string[]> =>
    (await Promise.all(types.map(entriesOf)))
      .flat()
      .map(({ body }) => String(body.task))
      .toSorted()
  assert.deepEqual(await told('task.queued'), wanted, 'each was queued once')
  assert.deepEqual(await told('task.dispatched'), wanted, 'each was dispatched once')
  assert.deepEqual(await told('task.completed', 'task.unknown'), wanted, 'each ended once')
  const verified = await plane.muster('journal', 'verify')
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
}
