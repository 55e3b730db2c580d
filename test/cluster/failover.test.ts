// The primary of a real Patroni cluster dies with its Patroni, under load, as often as asked: what was acknowledged is
// there, no token was good for two, and planes and writes go on by themselves.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { connectPostgres, type PgRow } from '#platform/postgres.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { startPatroni, type MemberName, type PatroniCluster } from '../process/patroni-cluster.ts'
import { targetByAddress } from '../process/plane-records.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import { withSeed } from '../process/with-seed.ts'
import { startEnrollmentLoad, type EnrollmentLoad, type Machine, type ReplicaDoor } from './enrollment-load.ts'

const rounds = process.env['MUSTER_LONG'] === '1' ? 10 : 1
const lanes = 9
/** Acknowledgements before the blow, so that it falls on something, and after it, so that writes have resumed. */
const enough = 60

const rowsOf = async (cluster: PatroniCluster, text: string): Promise<readonly PgRow[]> => {
  const connection = await connectPostgres(cluster.target, { applicationName: 'muster test', connectWithinMs: 10_000 })
  try {
    return (await connection.run({ name: text, text })).rows
  } finally {
    await connection.end()
  }
}

/** What was acknowledged in this round and before, compared with what the new primary has. */
const checkRows = async (cluster: PatroniCluster, machines: readonly Machine[]): Promise<void> => {
  const tokens = new Set((await rowsOf(cluster, 'SELECT id FROM token')).map(({ id }) => id))
  const certificates = new Map<string, string[]>()
  for (const { node, doc } of await rowsOf(cluster, 'SELECT node, doc FROM certificate WHERE node IS NOT NULL')) {
    const serials = certificates.get(String(node)) ?? []
    certificates.set(String(node), [...serials, JSON.parse(String(doc)).serial])
  }
  const enrolled = await rowsOf(cluster, "SELECT node FROM journal WHERE type = 'host.enrolled'")
  for (const { id, token, serials } of machines) {
    assert.ok(tokens.has(token), `the token of ${id} was acknowledged and is gone`)
    assert.equal(serials.size, 1, `${id} was given the certificates ${[...serials].join(', ')}`)
    assert.deepEqual(certificates.get(id), [...serials], `the certificates of ${id} in the store`)
    assert.equal(enrolled.filter(({ node }) => node === id).length, 1, `${id} enrolled once, in the journal`)
  }
}

const checkPlanes = async (doors: readonly ReplicaDoor[]): Promise<void> => {
  for (const { plane } of doors) {
    assert.ok(plane.running(), plane.stderr())
    await eventually('the plane to be ready again', async () => (await plane.api('GET', '/readyz')).status === 200, {
      withinMs: 30_000,
      everyMs: 200,
    })
    const { status, body } = await plane.api('POST', '/v1/journal/verify', {})
    assert.deepEqual([status, body.intact], [200, true], JSON.stringify(body))
  }
}

const untilMore = (load: EnrollmentLoad): Promise<unknown> => {
  const goal = load.acknowledged() + enough
  return eventually('writes', () => load.acknowledged() >= goal, { withinMs: 90_000, everyMs: 50 })
}

/** What the load was told wrongly is the reason, whatever was waited for. */
const underLoad = async (load: EnrollmentLoad, run: () => Promise<void>): Promise<void> => {
  const failure = await run().then(
    () => null,
    (error: unknown) => ({ error }),
  )
  await load.stop()
  if (failure !== null) throw failure.error
}

/** Rewound to what the others have agreed on, so that the next round has three again. */
const backAsCandidate = async (cluster: PatroniCluster, member: MemberName): Promise<void> => {
  await cluster.revive(member)
  await cluster.waitForStreaming(member)
}

const hasPeers = (t: TestContext): boolean =>
  withPeer(t, 'patroni') !== null && withPeer(t, 'etcd') !== null && withPeer(t, 'postgres') !== null

test(`kill -9 of the primary's Patroni and PostgreSQL under load, ${rounds} times: nothing acknowledged is lost`, async (t) => {
  if (!hasPeers(t)) return
  const cluster = await startPatroni(t)
  const planes = await startReplicaPlanes(t, 3, cluster.env)
  const doors = await Promise.all(planes.map(async (plane) => ({ plane, target: await targetByAddress(plane) })))
  const set = { strangersPerMinute: 1e6, strangersPerMinutePerSource: 1e6 }
  assert.equal((await planes[0]?.api('PATCH', '/v1/domain', { set }))?.status, 200)
  const machines: Machine[] = []
  const gapsMs: number[] = []
  await withSeed(async (random) => {
    for (let round = 0; round < rounds; round++) {
      await cluster.waitForSync()
      const load = startEnrollmentLoad(doors, random, { lanes, prefix: `r${round}` })
      const leaders: { before?: MemberName; after?: MemberName } = {}
      await underLoad(load, async () => {
        await untilMore(load)
        load.takeLongestGapMs()
        const killed = await cluster.killLeader()
        leaders.before = killed
        leaders.after = await cluster.waitForLeader({ otherThan: killed })
        await untilMore(load)
        gapsMs.push(load.takeLongestGapMs())
      }).catch((error: unknown) => {
        const logs = planes.map((plane) => plane.stderr().slice(-4000)).join('\n---\n')
        throw new Error(`round ${round}: ${String(error)}\n${logs}\n${cluster.logs()}`, { cause: error })
      })
      assert.notEqual(leaders.after, leaders.before)
      machines.push(...load.machines)
      await checkRows(cluster, machines)
      await checkPlanes(doors)
      if (leaders.before !== undefined) await backAsCandidate(cluster, leaders.before)
    }
  })
  t.diagnostic(
    `${machines.length} machines; without writes for ${gapsMs.map((ms) => (ms / 1000).toFixed(1)).join(', ')} s`,
  )
})
