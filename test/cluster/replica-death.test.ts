// One of three planes is killed, with a third of all channels: nodes that reconnect are back at once on the others,
// nothing that was acknowledged is lost, and only nodes that stay away become inactive.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { journalEntries } from '../process/plane-records.ts'
import { withSeed } from '../process/with-seed.ts'
import { joinFleet } from './channel-fleet.ts'
import { startEnrollmentLoad, type EnrollmentLoad } from './enrollment-load.ts'
import {
  byLeadership,
  lapsed,
  leaderOf,
  startPlanesBehindOne,
  waitMs,
  type PlanesBehindOne,
  type Tables,
} from './three-planes.ts'

const long = process.env['MUSTER_LONG'] === '1'
const channels = long ? 500 : 60
const lanes = long ? 6 : 2
const graceMs = 8000

/** What was acknowledged while a plane died, compared with what there is. */
const checkEnrollments = async ({ rows }: Tables, { machines }: EnrollmentLoad): Promise<void> => {
  const serials = new Map<string, string[]>()
  for (const { node, doc } of await rows("SELECT node, doc FROM certificate WHERE node LIKE 'load-%'"))
    serials.set(String(node), [...(serials.get(String(node)) ?? []), JSON.parse(String(doc)).serial])
  for (const machine of machines)
    assert.deepEqual(serials.get(machine.id), [...machine.serials], `the certificates of ${machine.id}`)
}

const startAgents = async (t: TestContext, { doors }: PlanesBehindOne): Promise<readonly Member[]> => {
  const agents: Member[] = []
  for (const [number, { plane }] of doors.entries())
    agents.push(await joinMember(t, plane, { id: `agent-${number}`, profile: 'gpu-cloud' }))
  await untilConnected(agents)
  return agents
}

/** As the planes that live have it in the store. */
const untilAllBack = async ({ tables }: PlanesBehindOne, dead: number, ids: readonly string[]): Promise<void> => {
  const living = (await tables.replicas()).filter(({ pid }) => pid !== dead).map(({ number }) => number)
  assert.equal(living.length, 2)
  await eventually(
    'everybody to have a channel at a plane that lives',
    async () => {
      const held = await tables.rows('SELECT node FROM holder WHERE replica = ANY($1)', [living])
      const nodes = new Set(held.map(({ node }) => node))
      return ids.every((id) => nodes.has(id))
    },
    { withinMs: 60_000, everyMs: 50 },
  )
}

const spread = (ms: readonly number[]): string => {
  const sorted = ms.toSorted((one, other) => one - other)
  const seconds = (at: number): string => `${((sorted[at] ?? 0) / 1000).toFixed(2)} s`
  return `median ${seconds(Math.floor(sorted.length / 2))}, longest ${seconds(sorted.length - 1)}`
}

test(`kill -9 of the leading one of three planes with ${channels} channels: all are back, only those who stay away lapse`, async (t) => {
  if (withPeer(t, 'postgres') === null) return
  await withSeed(async (random) => {
    const world = await startPlanesBehindOne(t)
    const { doors, tables } = world
    const fleet = await joinFleet(t, doors, random, { prefix: 'node', count: channels })
    const agents = await startAgents(t, world)
    const { leader, others } = await byLeadership(world)
    const dead = doors.indexOf(leader)
    const lost = fleet.nodes.filter((node) => node.at() === dead)
    assert.ok(lost.length >= Math.floor(channels / 3), 'a third of them was there')
    // Of those that are lost some are gone for good, and some of those that the others hold.
    const staying = [...lost.slice(0, 3), ...fleet.nodes.filter((node) => node.at() !== dead).slice(0, 3)]

    const load = startEnrollmentLoad(doors, random, { lanes, prefix: 'load' })
    await waitMs(500)
    const killedMs = performance.now()
    await leader.plane.kill9()
    for (const node of staying) node.leave()
    const wanted = fleet.nodes.filter((node) => !node.hasLeft())
    await untilAllBack(
      world,
      leader.plane.pid,
      [...wanted, ...agents].map(({ id }) => id),
    )
    const backMs = performance.now() - killedMs
    await waitMs(500)
    await load.stop()
    await checkEnrollments(tables, load)
    for (const { plane } of others) assert.ok(plane.running(), plane.stderr())
    const absences = lost.filter((node) => !node.hasLeft()).map((node) => node.absences[1]?.ms ?? Infinity)
    assert.deepEqual(await lapsed(tables), [], 'nobody was taken for dead before the grace')

    // The lease of the dead one is longer than this grace: a node that is back is not counted by its old channel.
    const [{ plane }] = others
    const set = await plane.api('PATCH', '/v1/domain', { set: { livenessGraceMs: graceMs } })
    assert.equal(set.status, 200, JSON.stringify(set.body))
    const away = staying.map(({ id }) => id).toSorted()
    await eventually('those who stayed away to be inactive', async () => (await lapsed(tables)).length >= away.length, {
      withinMs: 60_000,
      everyMs: 200,
    })
    const lapsedMs = performance.now() - killedMs
    const next = await leaderOf(tables)
    assert.ok(next !== null && next.pid !== leader.plane.pid, 'another leads')
    await checkLapses(world, plane, away, next.number)
    assert.deepEqual(fleet.missing(), [])
    for (const node of lost) if (!node.hasLeft()) assert.equal(node.absences.length, 2, `${node.id} lost one channel`)
    await untilConnected(agents)
    t.diagnostic(
      [
        `${lost.length} of ${channels} channels lost their plane; back: ${spread(absences)}`,
        `with the ${agents.length} agents behind a balancer everybody after ${(backMs / 1000).toFixed(1)} s; ${load.acknowledged()} acknowledged writes meanwhile, none lost`,
        `the ${away.length} that stayed away were inactive after ${(lapsedMs / 1000).toFixed(1)} s`,
      ].join('; '),
    )
  })
})

/** Once each, those and no others, by the one that leads now. Machines that never had a channel are not awaited. */
const checkLapses = async (
  { tables }: PlanesBehindOne,
  plane: Parameters<typeof journalEntries>[0],
  away: readonly string[],
  leader: number,
): Promise<void> => {
  assert.deepEqual(await lapsed(tables), away)
  const chains = await tables.rows('SELECT chain FROM chain WHERE writer = $1', [leader])
  for (const { chain, body, actor } of await journalEntries(plane, { type: 'node.lapsed' })) {
    assert.deepEqual([actor, body.grace_ms], ['system:liveness', graceMs])
    assert.equal(chain, chains[0]?.['chain'])
  }
}
