// The plane that sweeps stands still in the middle of a sweep, for longer than its lease, and goes on: another has taken
// over meanwhile, and what the first was about to write is not written.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseMs } from '#plane/store/contract/replicas.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { withSeed } from '../process/with-seed.ts'
import { joinFleet, type FleetNode } from './channel-fleet.ts'
import { byLeadership, lapsed, leaderOf, startThreePlanes, untilReady, waitMs, type Tables } from './three-planes.ts'

const long = process.env['MUSTER_LONG'] === '1'
const count = long ? 90 : 18
const stoppedMs = long ? 60_000 : leaseMs + 5000
const graceMs = 5000
/** How often it is looked who leads, with some room for a busy machine. */
const lookMs = 2000

/** The transaction that makes nodes inactive waits for their rows, which the test has. */
const untilSweepWaits = ({ rows }: Tables): Promise<unknown> =>
  eventually(
    'the sweep to wait for a row',
    async () => {
      const waiting = await rows(`SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'muster write' AND wait_event_type = 'Lock'
          AND query LIKE '%FROM node %'`)
      return waiting.length > 0
    },
    { withinMs: 30_000, everyMs: 20 },
  )

/** Journal entries in the order of their chain, with the replica that writes it now. */
const lapsesBy = async ({ rows }: Tables) =>
  (
    await rows(`SELECT journal.node, journal.bytes, chain.writer FROM journal JOIN chain USING (chain)
      WHERE type = 'node.lapsed' ORDER BY journal.node`)
  ).map(({ node, bytes, writer }) => ({
    node: String(node),
    writer: Number(writer),
    sinceMs: Date.parse(JSON.parse(String(bytes)).body.last_present),
  }))

test('SIGSTOP of the plane that sweeps, in the middle of a sweep, past its lease: another goes on, its late writes are refused', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  await withSeed(async (random) => {
    const world = await startThreePlanes(t, { set: { livenessGraceMs: graceMs } })
    const { doors, tables } = world
    const { leader, others } = await byLeadership(world)
    const first = await leaderOf(tables)
    const fleet = await joinFleet(t, doors, random, { prefix: 'node', count })
    const onLeader = fleet.nodes.filter((node) => node.at() === doors.indexOf(leader))
    const elsewhere = fleet.nodes.filter((node) => !onLeader.includes(node))
    // Gone for good, from every plane: the leader is about to make them inactive when it stops.
    const gone = [...onLeader.slice(0, 2), ...elsewhere.slice(0, 4)]
    const away = gone.map(({ id }) => id).toSorted()

    const lock = await tables.connect()
    await lock.exec('BEGIN')
    await lock.run({ name: '', text: 'SELECT FROM node WHERE key = ANY($1) ORDER BY key FOR UPDATE' }, [away])
    for (const node of gone) node.leave()
    await untilSweepWaits(tables)
    leader.plane.signal('SIGSTOP')
    const stopMs = performance.now()
    await lock.exec('ROLLBACK')
    // Agents notice by the silence of their plane; these do at once, and are nobody's deaths.
    for (const node of onLeader) if (!gone.includes(node)) node.moveOn()

    // It stands still inside a transaction: nobody waits for it longer than the server lets it.
    const drained = await others[0].plane.api('POST', `/v1/nodes/${away[0]}/drain`, {})
    assert.equal(drained.status, 200, JSON.stringify(drained.body))
    const servedMs = performance.now() - stopMs

    const next = await eventually(
      'another to lead',
      async () => {
        const leads = await leaderOf(tables)
        return leads !== null && leads.number !== first?.number && leads
      },
      { withinMs: leaseMs + 10_000, everyMs: 100 },
    )
    const [takenMs, takenAtMs] = [performance.now() - stopMs, Date.now()]
    assert.ok(others.some(({ plane }) => plane.pid === next.pid))
    assert.ok(takenMs > leaseMs - 2000, `nobody is replaced under its lease, and it was after ${takenMs} ms`)

    await waitMs(stoppedMs - (performance.now() - stopMs))
    const early = (await lapsed(tables)).length
    leader.plane.signal('SIGCONT')
    await untilReady(leader.plane)
    const again = (await tables.replicas()).find(({ pid }) => pid === leader.plane.pid)
    assert.ok(again !== undefined && first !== null && again.number > Math.max(first.number, next.number))
    assert.equal(again.leads, false)

    await eventually('the sweep to go on', async () => (await lapsed(tables)).length >= away.length, {
      withinMs: 30_000,
      everyMs: 100,
    })
    // As long as the late writes of the first would take.
    await waitMs(2000)
    const lapses = await lapsesBy(tables)
    assert.deepEqual(
      lapses.map(({ node, writer }) => ({ node, writer })),
      away.map((node) => ({ node, writer: next.number })),
      'each once, by the one that leads',
    )
    for (const { sinceMs } of lapses)
      assert.ok(sinceMs > takenAtMs - lookMs, 'the count began anew when another took over')
    assert.equal((await leaderOf(tables))?.number, next.number)
    // Its transaction was rolled back by the server, or found out that another leads.
    assert.match(leader.plane.stderr(), /nothing was committed.*"task":"lapse"|another replica leads by now/)
    await checkServes(leader, elsewhere.at(-1) as FleetNode)
    assert.deepEqual(fleet.missing(), [])
    const verified = await leader.plane.api('POST', '/v1/journal/verify', {})
    assert.equal(verified.body.intact, true, JSON.stringify(verified.body))
    t.diagnostic(
      [
        `stopped for ${(stoppedMs / 1000).toFixed(0)} s; the row it had locked was free after ${(servedMs / 1000).toFixed(1)} s`,
        `another led after ${(takenMs / 1000).toFixed(1)} s; ${away.length} lapses, once each, ${early} of them before it went on; ${fleet.nodes.length - away.length} nodes stayed active`,
      ].join('; '),
    )
  })
})

/** Under its new number, as if nothing had been. */
const checkServes = async ({ target }: { readonly target: Parameters<typeof openRawChannel>[0] }, node: FleetNode) => {
  const channel = await openRawChannel(target, node.identity, node.id, { evidence: node.evidence })
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  channel.destroy()
}
