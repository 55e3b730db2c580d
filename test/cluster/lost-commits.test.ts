// R1: the database under running planes loses commits that they have acknowledged: an older dump is restored, or an
// asynchronous standby is promoted that has not got them. From then on no spent token and no revoked node gets in, at any
// plane that knew better, restarted or not, until an operator has confirmed the store.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { act, makeToken, succeeded } from '../compliance/ask-plane.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { nodeCall } from '../process/node-call.ts'
import { eventually } from '../process/eventually.ts'
import type { Reply } from '../process/operator-call.ts'
import { postgresDatabase, startPostgres, startStandby, type TestDatabase } from '../process/postgres-server.ts'
import { rawNode } from '../process/raw-node.ts'
import { recoverableNode, type RecoverableNode } from '../process/raw-recovery.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import type { Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const long = process.env['MUSTER_LONG'] === '1'
const patience = { withinMs: 30_000, everyMs: 50 }

type Losing = {
  readonly env: Readonly<Record<string, string>>
  /** Whatever is committed from now on is going to be lost. */
  mark(): Promise<void>
  lose(): Promise<void>
}

/** By pg_dump and pg_restore, into a database of the same name. */
const olderDump = async (t: TestContext): Promise<Losing> => {
  const database = await postgresDatabase(t, 'migrated')
  const admin = await postgresDatabase(t).then((other) => other.connect())
  const found = peer('postgres')
  assert('path' in found)
  const run = (program: string, ...args: string[]) =>
    promisify(execFile)(path.join(path.dirname(found.path), program), args, {
      env: { ...process.env, ...database.env },
    })
  const file = path.join(tempFolder(t), 'dump')
  return {
    env: database.env,
    mark: async () => void (await run('pg_dump', '-Fc', '-f', file)),
    async lose() {
      // Beside it, then in its place: the planes are never refused a connection for long.
      await admin.exec(`CREATE DATABASE ${database.name}_older TEMPLATE template0`)
      await run('pg_restore', '-d', `${database.name}_older`, file)
      await admin.exec(`DROP DATABASE ${database.name} WITH (FORCE)`)
      await admin.exec(`ALTER DATABASE ${database.name}_older RENAME TO ${database.name}`)
    },
  }
}

/** Asynchronous, and cut off before the commits in question. Planes know both servers. */
const promotedStandby = async (t: TestContext): Promise<Losing> => {
  const primary = await startPostgres(t)
  const database: TestDatabase = await primary.database(t)
  const standby = await startStandby(t, primary)
  return {
    env: {
      ...database.env,
      PGHOST: `${primary.folder},${standby.folder}`,
      PGPORT: `${primary.port},${standby.port}`,
    },
    async mark() {
      const connection = await database.connect()
      const caughtUp = {
        name: 'caught-up',
        text: 'SELECT FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()',
      }
      await eventually('the standby to have all', async () => (await connection.run(caughtUp)).count === 1, patience)
      await standby.stop('fast')
    },
    async lose() {
      await primary.stop('crash')
      await standby.start()
      await standby.promote()
    },
  }
}

const ways = { 'an older dump is restored': olderDump, 'an asynchronous standby is promoted': promotedStandby }

type Case = {
  readonly way: keyof typeof ways
  readonly planes: 1 | 2
  readonly entries: 4 | 400
  readonly restart: boolean
}

const every: readonly Case[] = (Object.keys(ways) as Case['way'][]).flatMap((way) =>
  ([1, 2] as const).flatMap((planes) =>
    ([4, 400] as const).flatMap((entries) => [true, false].map((restart) => ({ way, planes, entries, restart }))),
  ),
)
const few: readonly Case[] = [
  { way: 'an older dump is restored', planes: 1, entries: 4, restart: false },
  { way: 'an asynchronous standby is promoted', planes: 2, entries: 4, restart: true },
]

const doubtOf = async (plane: Plane) => (await plane.api('GET', '/v1/store/continuity')).body.doubt ?? null
const isReady = async (plane: Plane): Promise<boolean> => (await plane.api('GET', '/readyz')).status === 200
const doubtFile = (plane: Plane): string => path.join(plane.data, 'store-doubt.json')

/** Whatever becomes of the call, as long as nobody gets in. */
const keptOut = (what: string, call: Promise<Reply>): Promise<void> =>
  call.then(
    ({ status, body }) => assert.notEqual(status, 200, `${what}: ${JSON.stringify(body)}`),
    (error: unknown) =>
      assert.ok(!(error instanceof assert.AssertionError) || /503/.test(error.message), String(error)),
  )

const recoverAt = async (plane: Plane, node: RecoverableNode): Promise<Reply> => {
  const target = { ...node.target, url: plane.recoveryUrl }
  const challenge = await node.challenge(target)
  return nodeCall(target, null, 'POST', '/v1/recover', await node.body({ challenge }))
}

const isInDoubt = async (plane: Plane): Promise<boolean> => {
  const { status, body } = await plane.api('GET', '/readyz')
  return status === 503 && /in-doubt/.test(JSON.stringify(body))
}

/** By the plane itself, with all that it has known since it was started. */
const assertIntact = async (plane: Plane): Promise<void> => {
  const verified = await plane.muster('journal', 'verify')
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
}

const confirmStore = async (plane: Plane): Promise<void> => {
  const confirmed = await plane.muster('store', 'confirm', '--reason', 'the standby had not got it')
  assert.equal(confirmed.code, 0, confirmed.stderr)
}

/** All that should not get in, at every plane, again and again, beside ordinary work. */
const besiege = async (
  planes: readonly Plane[],
  spent: readonly string[],
  revoked: readonly RecoverableNode[],
  forMs: number,
): Promise<void> => {
  const untilMs = performance.now() + forMs
  const lanes = planes.flatMap((plane, at) => [
    async () => {
      for (const secret of spent) await keptOut('a spent token', rawNode(await plane.target()).enrollByToken(secret))
    },
    async () => {
      for (const node of revoked) await keptOut('a revoked node', recoverAt(plane, node))
    },
    async () => void (await plane.api('POST', '/v1/tokens', { node: `work-${at}` }).catch(() => undefined)),
  ])
  await Promise.all(
    lanes.map(async (lane) => {
      while (performance.now() < untilMs) await lane()
    }),
  )
}

describe('a database that loses commits under its planes', { concurrency: 2 }, () => {
  for (const { way, planes: count, entries, restart } of long ? every : few)
    test(`R1: ${way} under ${count} plane(s), ${entries} entries lost, ${restart ? 'restarted' : 'not restarted'}: no spent token and no revoked node gets in`, async (t) => {
      if (withPeer(t, 'postgres') === null) return
      const losing = await ways[way](t)
      let planes = await startReplicaPlanes(t, count, losing.env)
      const [first, last] = [planes[0] as Plane, planes.at(-1) as Plane]
      const [stolen, faithful] = [await recoverableNode(first, 'stolen'), await recoverableNode(last, 'faithful')]
      const tokens = await Promise.all(planes.map((plane, at) => makeToken(plane, { node: `once-${at}` })))
      const secrets = tokens.map(({ secret }) => secret)
      await losing.mark()

      await act(last, 'stolen', 'revoke', { reason: 'stolen' })
      for (const [at, plane] of planes.entries())
        assert.equal((await rawNode(await plane.target()).enrollByToken(secrets[at] as string)).status, 200)
      for (let made = 4; made < entries; made += 4)
        await Promise.all(
          planes.flatMap((plane) => [0, 1, 2, 3].map((at) => makeToken(plane, { node: `more-${made}-${at}` }))),
        )
      await losing.lose()
      await besiege(planes, secrets, [stolen], long ? 12_000 : 1500)

      for (const plane of planes) {
        await eventually('the plane to be in doubt', () => isInDoubt(plane), patience)
        assert.match(fs.readFileSync(doubtFile(plane), 'utf8'), /"hash": "[0-9a-f]{64}"/)
      }
      const doubt = await eventually('the doubt to be in the store', () => doubtOf(first), patience)
      assert.match(doubt.in_words, /plane .* has seen/)
      const alerts = (await first.api('GET', '/v1/alerts')).body.alerts
      assert.ok(
        alerts.some(
          ({ kind, severity }: { kind: string; severity: string }) =>
            kind === 'store_in_doubt' && severity === 'critical',
        ),
      )

      if (restart) {
        for (const plane of planes) await plane.stop()
        planes = await Promise.all(planes.map((plane) => plane.restart()))
        for (const plane of planes) assert.ok(await isInDoubt(plane), 'a restart forgets nothing')
        await besiege(planes, secrets, [stolen], 500)
      }
      const [one] = planes as readonly [Plane]
      const granted = await one.api('POST', '/v1/tokens', { node: 'newcomer' })
      assert.deepEqual([granted.status, granted.body.code], [503, 'STORE_IN_DOUBT'])
      // A stolen machine can always be cut off, and the store is confirmed afterwards.
      await act(one, 'stolen', 'revoke', { reason: 'stolen, as before' })
      await confirmStore(one)
      for (const plane of planes) {
        await eventually('the plane to be ready again', () => isReady(plane), patience)
        assert.ok(!fs.existsSync(doubtFile(plane)), 'what is confirmed is not doubted after the next start')
      }
      for (const plane of planes) {
        await keptOut('the revoked node', recoverAt(plane, stolen))
        await assertIntact(plane)
      }
      assert.equal((await faithful.node.confirm()).status, 200)
      succeeded(await planes.at(-1)!.api('POST', '/v1/tokens', { node: 'newcomer' }))
    })

  test('R1: a plane that stood still while commits were lost and confirmed does not put the store in doubt again', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const losing = await olderDump(t)
    const [awake, stopped] = (await startReplicaPlanes(t, 2, losing.env)) as [Plane, Plane]
    const stolen = await recoverableNode(stopped, 'stolen')
    await losing.mark()
    for (const plane of [awake, stopped]) await makeToken(plane, { node: 'lost' })

    stopped.signal('SIGSTOP')
    try {
      await losing.lose()
      await eventually('the plane to be in doubt', () => isInDoubt(awake), patience)
      await eventually('the doubt to be in the store', () => doubtOf(awake), patience)
      await act(awake, 'stolen', 'revoke', { reason: 'stolen' })
      await confirmStore(awake)
      await eventually('the plane to be ready again', () => isReady(awake), patience)
    } finally {
      stopped.signal('SIGCONT')
    }
    const missed = () => /was confirmed since/.test(stopped.stdout() + stopped.stderr())
    await eventually('the other to notice what it missed', missed, patience)
    await eventually('the other to be ready', () => isReady(stopped), patience)
    assert.equal((await stolen.node.confirm()).status, 403, 'it has received what was revoked meanwhile')
    for (const plane of [awake, stopped]) {
      assert.equal(await doubtOf(plane), null)
      assert.ok(!fs.existsSync(doubtFile(plane)))
      succeeded(await plane.api('POST', '/v1/tokens', { node: 'newcomer' }))
      await assertIntact(plane)
      assert.ok(await isReady(plane))
    }
    const doubted = succeeded(await awake.api('GET', '/v1/journal?type=store.doubted&limit=10'))
    assert.equal(doubted.entries.length, 1)
  })
})
