// R2: a plane whose clock is off takes itself out. Real planes over a real PostgreSQL, one of them under libfaketime.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import { runMuster } from '../process/run-muster.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** Alerts are looked at every ten seconds. */
const long = process.env['MUSTER_LONG'] === '1'
const minute = 60_000
const day = 24 * 60 * minute

const metric = async (plane: Plane, name: string): Promise<number> => {
  const { body } = await plane.api('GET', '/metrics')
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(String(body))?.[1])
}

const ready = async (plane: Plane) => {
  const { status, body } = await plane.api('GET', '/readyz')
  return { status, reasons: (body.reasons as string[]).join('\n') }
}

const openAlerts = async (plane: Plane): Promise<string[]> => {
  const { body } = await plane.api('GET', '/v1/alerts')
  return (body.alerts as { kind: string; reason: string }[])
    .filter(({ kind }) => kind === 'clock_off')
    .map(({ reason }) => reason)
}

const free = ['node', 'recovery', 'operator', 'status'].flatMap((door) => [`--${door}-listen`, '127.0.0.1:0'])

const tryPlane = (data: string, env: Readonly<Record<string, string>>, ...args: string[]) =>
  runMuster(['plane', '--data', data, ...free, '--log-level', 'silent', ...args], { env })

test('R2: a plane 10 min ahead or behind decides nothing, does not lead, says so, and comes back when its clock is right', async (t: TestContext) => {
  const library = withPeer(t, 'faketime')
  if (library === null || withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const time = openFakeTime(tempFolder(t), library)
  // The first leads: it is the one whose clock goes wrong.
  const optionsOf = (number: number) => (number === 1 ? { env: time.env } : {})
  const [off, right] = await startReplicaPlanes(t, 2, database.env, optionsOf)
  assert.ok(off !== undefined && right !== undefined)
  assert.equal(await metric(off, 'muster_leads'), 1)

  for (const skewMs of [10 * minute, -10 * minute]) {
    time.advance(skewMs)
    const words =
      skewMs > 0 ? /skewed: .* 1?[09] min.* ahead of the database's/ : /skewed: .* min.* behind the database's/
    await eventually('it to say so', async () => words.test((await ready(off)).reasons), { withinMs: 10_000 })
    assert.equal((await ready(off)).status, 503)
    assert.equal((await off.api('POST', '/v1/tokens', { node: 'gpu-002' })).body.code, 'REPLICA_BEHIND')
    assert.equal((await off.api('GET', '/v1/nodes')).status, 200, 'operators may look')
    assert.equal(await metric(off, 'muster_leads'), 0)
    assert.ok(Math.abs((await metric(off, 'muster_clock_offset_seconds')) * 1000 - skewMs) < 5000)
    await eventually('the other to lead', async () => (await metric(right, 'muster_leads')) === 1, { withinMs: 10_000 })
    if (long) {
      const raised = async (): Promise<string | null> => (await openAlerts(right))[0] ?? null
      const reason = await eventually('the other to raise an alert', raised, { withinMs: 20_000 })
      assert.match(reason, /the clock of the plane .* the database's/)
    }
    assert.equal((await ready(right)).status, 200)

    time.advance(-skewMs)
    await eventually('it to serve again', async () => (await ready(off)).status === 200, { withinMs: 10_000 })
    if (long)
      await eventually('the alert to be over', async () => (await openAlerts(right)).length === 0, { withinMs: 20_000 })
  }
})

test('R2: over PostgreSQL a plane 3 days ahead or behind does not start, and changes nothing', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null || withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const env = { MUSTER_STORE: 'postgres', ...database.env }
  for (const skewMs of [3 * day, -3 * day]) {
    const { code, stderr } = await tryPlane(tempFolder(t), {
      ...env,
      ...openFakeTime(tempFolder(t), library, skewMs).env,
    })
    assert.equal(code, 78, stderr)
    assert.match(stderr, /CLOCK_OFF/)
    assert.match(stderr, skewMs > 0 ? /ahead of the database's/ : /behind the database's/)
  }
  const connection = await database.connect()
  const { rows } = await connection.run({
    name: '',
    text: "SELECT count(*) AS n FROM pg_tables WHERE schemaname = 'public'",
  })
  assert.equal(Number(rows[0]?.['n']), 0, 'no schema was made')
})

test('R2: a plane whose clock is before the beginning of its root does not start, names the clock, and starts when it is right', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  const plane = await startPlane(t)
  await plane.stop()
  const { env } = openFakeTime(tempFolder(t), library, -3 * day)
  const { code, stderr } = await tryPlane(plane.data, { ...env, MUSTER_CLOCK_TOLERANCE: '36500d' })
  assert.equal(code, 78, stderr)
  assert.match(stderr, /CLOCK_OFF/)
  assert.match(stderr, /the root of this domain began/)
  assert.doesNotMatch(stderr, /FAULT/)
  assert.equal((await ready(await plane.restart())).status, 200)
})
