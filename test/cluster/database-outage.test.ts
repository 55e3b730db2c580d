// The database is away for longer than a lease, for all planes or for one of them. Planes say so and stop; no node is taken
// for dead; and a plane that cannot have received a revocation does not serve its node.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { leaseMs, mostBehindMs } from '#plane/store/contract/replicas.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { startFaultProxy, type FaultProxy } from '../process/fault-proxy.ts'
import { nodeCall } from '../process/node-call.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { shared } from '../process/shared-plane.ts'
import type { Plane } from '../process/start-plane.ts'
import { withSeed } from '../process/with-seed.ts'
import { joinFleet, type Fleet, type FleetNode } from './channel-fleet.ts'
import type { ReplicaDoor } from './enrollment-load.ts'
import { lapsed, startThreePlanes, untilReady, waitMs, type ThreePlanes } from './three-planes.ts'

const long = process.env['MUSTER_LONG'] === '1'
const outageMs = long ? 60_000 : leaseMs + 2500
const count = long ? 60 : 12
/** Shorter than the outage, and longer than the nodes of this file wait between two tries. */
const graceMs = 4000
const longestWaitMs = 1000
/** What is due is looked at four times a second, and this machine may be busy. */
const slackMs = 2500

type World = ThreePlanes & { readonly paths: readonly FaultProxy[] }

const three =
  'path' in peer('postgres')
    ? shared<World>(async (scope) => {
        const database = await postgresDatabase(scope, 'migrated')
        const server = { host: '127.0.0.1', port: Number(database.env.PGPORT) }
        const paths = [
          await startFaultProxy(scope, server),
          await startFaultProxy(scope, server),
          await startFaultProxy(scope, server),
        ]
        const world = await startThreePlanes(scope, {
          database,
          set: { livenessGraceMs: graceMs },
          planes: (number) => ({ env: { PGHOST: server.host, PGPORT: String(paths[number - 1]?.port) } }),
        })
        return { ...world, paths }
      })
    : null

/** When a plane first said of itself that it was behind, and expired, in fair ms since now. Until it is ready again. */
const watchReadiness = (plane: Plane) => {
  const sinceMs = fairStopwatch()
  const seen = new Map<string, number>()
  let over = false
  const watching = (async () => {
    while (!over) {
      const answer = await plane.api('GET', '/readyz').catch(() => null)
      if (answer === null) return
      const { status, body } = answer
      const [kind = 'ready'] = (body.reasons as string[]).map((reason) => /^(behind|expired):/.exec(reason)?.[1])
      assert.equal(status, body.ready ? 200 : 503)
      if (!seen.has(kind)) seen.set(kind, sinceMs())
      await waitMs(100)
    }
  })()
  return {
    async stop(): Promise<ReadonlyMap<string, number>> {
      over = true
      await watching
      return seen
    },
  }
}

const refusedHere = async ({ plane, target }: ReplicaDoor, { identity, id, evidence }: FleetNode): Promise<void> => {
  const opened = await openRawChannel(target, identity, id, { evidence })
  assert.ok('status' in opened, 'a channel was opened at a plane that is out of touch')
  assert.deepEqual([opened.status, opened.body.code], [503, 'REPLICA_BEHIND'])
  const confirmed = await nodeCall(target, identity, 'POST', `/v1/nodes/${id}/confirm`, {}, evidence)
  assert.deepEqual([confirmed.status, confirmed.body.code], [503, 'REPLICA_BEHIND'])
  const mutation = await plane.api('POST', '/v1/tokens', { node: 'none' })
  assert.deepEqual([mutation.status, mutation.body.code], [503, 'REPLICA_BEHIND'])
}

const untilAllConnected = (fleet: Fleet, withinMs: number): Promise<true> =>
  eventually('everybody to have a channel', () => fleet.missing().length === 0, { withinMs, everyMs: 20 })

/** However the test ends: the planes are to stop in order. */
const withoutFaults = (t: TestContext, { paths, doors }: World): void =>
  cleanup(t, async () => {
    for (const path of paths) path.pass()
    for (const { plane } of doors) await untilReady(plane)
  })

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

test('the database hangs for longer than grace and lease: planes report it and cut their channels, no node lapses, all come back', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const { doors, tables, paths } = three()
  withoutFaults(t, three())
  await withSeed(async (random) => {
    const fleet = await joinFleet(t, doors, random, { prefix: 'outage', count, longestWaitMs })
    const [gone, ...nodes] = fleet.nodes as [FleetNode, ...FleetNode[]]
    for (const path of paths) path.blackhole()
    const [startMs, fairMs] = [performance.now(), fairStopwatch()]
    const watches = doors.map(({ plane }) => watchReadiness(plane))
    // It really is away, and nobody could write that down.
    gone.leave()
    const cut = nodes.map((node) =>
      eventually('its channel to be cut', () => node.channel() === null, { withinMs: 2 * leaseMs, everyMs: 10 }).then(
        () => ({ ms: performance.now() - startMs, fairMs: fairMs() }),
      ),
    )
    await waitMs(mostBehindMs + 1000)
    await Promise.all(doors.map((door, at) => refusedHere(door, nodes[at] as FleetNode)))
    const cuts = await Promise.all(cut)
    const cutMs = cuts.map(({ ms }) => ms)
    const lastCutMs = Math.max(...cuts.map((one) => one.fairMs))
    assert.ok(lastCutMs < leaseMs + slackMs, `the last was cut after ${lastCutMs} ms`)
    assert.ok(Math.min(...cutMs) > mostBehindMs, `the first was cut after ${Math.min(...cutMs)} ms`)

    await waitMs(outageMs - (performance.now() - startMs))
    for (const path of paths) path.pass()
    const backMs = performance.now()
    await Promise.all(doors.map(({ plane }) => untilReady(plane)))
    const readyMs = performance.now() - backMs
    await untilAllConnected(fleet, 20_000)
    const allBackMs = performance.now() - backMs
    for (const watch of watches) {
      const seen = await watch.stop()
      const [behindMs, expiredMs] = [seen.get('behind') ?? Infinity, seen.get('expired') ?? Infinity]
      assert.ok(behindMs < mostBehindMs + slackMs, `behind after ${behindMs} ms`)
      assert.ok(expiredMs > behindMs && expiredMs < leaseMs + slackMs, `expired after ${expiredMs} ms`)
    }
    // Nodes that were connected when the database came back stay active; the absent one gets its grace once more.
    await eventually('the one that stayed away to be inactive', async () => (await lapsed(tables)).length > 0, {
      withinMs: 30_000,
      everyMs: 100,
    })
    const lapsedMs = performance.now() - backMs
    assert.deepEqual(await lapsed(tables), [gone.id])
    assert.ok(lapsedMs > graceMs)
    t.diagnostic(
      [
        `away for ${seconds(outageMs)}; channels cut after ${seconds(Math.min(...cutMs))} to ${seconds(Math.max(...cutMs))}`,
        `planes ready ${seconds(readyMs)} after its return, all ${nodes.length} nodes back after ${seconds(allBackMs)}`,
        `the one that stayed away lapsed after ${seconds(lapsedMs)}`,
      ].join('; '),
    )
    for (const node of fleet.nodes) node.leave()
  })
})

test('revoked at one plane while another cannot reach the database: that one does not serve the node, and cuts it by the end of its lease', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const { doors, tables, paths } = three()
  withoutFaults(t, three())
  const [apart, acting] = doors
  await withSeed(async (random) => {
    const fleet = await joinFleet(t, doors, random, { prefix: 'parted', count: 6, longestWaitMs })
    const thief = fleet.nodes.find((node) => node.at() === 0) as FleetNode
    const channel = thief.channel()
    assert.ok(channel !== null)
    paths[0]?.blackhole()
    const revoked = await acting.plane.api('POST', `/v1/nodes/${thief.id}/revoke`, { reason: 'stolen' })
    const [revokedMs, fairMs] = [performance.now(), fairStopwatch()]
    assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
    assert.equal(revoked.body.replicas_unconfirmed, 1, 'the receipt says that one has not confirmed')

    const told: { readonly ms: number; readonly answer: string }[] = []
    const attempts = setInterval(() => {
      const askedMs = fairMs()
      void openRawChannel(apart.target, thief.identity, thief.id, { evidence: thief.evidence }).then(
        (opened) =>
          told.push({
            ms: askedMs,
            answer: 'frames' in opened ? 'opened' : `${opened.status} ${opened.body.code}`,
          }),
        () => {},
      )
    }, 500)
    await eventually('the channel of the revoked node to be cut', () => channel.ended(), {
      withinMs: leaseMs + slackMs,
      everyMs: 5,
    }).finally(() => clearInterval(attempts))
    const cutMs = performance.now() - revokedMs
    assert.ok(told.length > 0)
    for (const { answer, ms } of told) {
      assert.match(answer, /^503 /, `${answer} after ${ms} ms`)
      if (ms > mostBehindMs + slackMs) assert.equal(answer, '503 REPLICA_BEHIND')
    }
    const behind = told.filter(({ answer }) => answer === '503 REPLICA_BEHIND')
    assert.ok(behind.length > 0)
    thief.leave()
    // The others of that plane have moved on by themselves.
    await untilAllConnected(fleet, 20_000)

    paths[0]?.pass()
    await untilReady(apart.plane)
    const again = await openRawChannel(apart.target, thief.identity, thief.id, { evidence: thief.evidence })
    assert.ok('status' in again)
    assert.deepEqual([again.status, again.body.code], [403, 'NODE_REVOKED'])
    const dead = (await lapsed(tables)).filter((id) => id.startsWith('parted-'))
    assert.deepEqual(dead, [], 'nobody was taken for dead')
    const firstMs = Math.min(...behind.map(({ ms }) => ms))
    t.diagnostic(
      `${told.length} tries, none succeeded; REPLICA_BEHIND from ${seconds(firstMs)} on; cut after ${seconds(cutMs)}`,
    )
  })
})
