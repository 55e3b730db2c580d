// Planes as real processes over a real PostgreSQL: how they start, what keeps them from it, and several on one port set.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { startChild, startedCommand } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { postgresDatabase, startPostgres, type TestDatabase } from '../process/postgres-server.ts'
import { runMuster, type Ran } from '../process/run-muster.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane, type PlaneOptions } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const onDatabase = ({ env }: TestDatabase) => ({ MUSTER_STORE: 'postgres', ...env })

const startOn = (t: TestContext, database: TestDatabase, options: PlaneOptions = {}): Promise<Plane> =>
  startPlane(t, { ...options, env: { ...onDatabase(database), ...options.env } })

const free = ['node', 'recovery', 'operator', 'status'].flatMap((door) => [`--${door}-listen`, '127.0.0.1:0'])

/** A plane that is expected not to start. */
const tryPlane = (data: string, env: Record<string, string>, ...args: string[]): Promise<Ran> =>
  runMuster(['plane', '--data', data, ...free, '--log-level', 'silent', ...args], { env })

const sealKey = (t: TestContext, digits: string): string => {
  const file = path.join(tempFolder(t), 'seal.key')
  fs.writeFileSync(file, digits.repeat(64), { mode: 0o600 })
  return file
}

const rowsOf = async (database: TestDatabase): Promise<string> => {
  const connection = await database.connect()
  const tables = ['replica', 'sealed_key', 'chain', 'journal', 'issuer', 'certificate']
  const counts = tables.map((table) => `(SELECT json_agg(t ORDER BY t::text) FROM ${table} AS t)`)
  const { rows } = await connection.run({ name: '', text: `SELECT concat_ws('|', ${counts.join(', ')})::text AS all` })
  return String(rows[0]?.['all'])
}

const childrenOf = (pid: number): number[] =>
  fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('the first plane makes the domain, the second finds it made, and either shows what the other did', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const seal = sealKey(t, 'a')
  const first = await startOn(t, database, { args: ['--seal-key', seal] })
  const banner = JSON.parse(first.stdout()) as Record<string, unknown>
  assert.deepEqual([banner['first_run'], banner['admin_key_here']], [true, true])
  assert.deepEqual(
    fs
      .readdirSync(first.data)
      .filter((name) => !name.startsWith('journal-heads.json'))
      .sort(),
    ['admin.key', 'plane.domain', 'run'],
  )

  const data = path.join(tempFolder(t), 'data')
  fs.mkdirSync(data, { mode: 0o700 })
  fs.copyFileSync(path.join(first.data, 'admin.key'), path.join(data, 'admin.key'))
  const second = await startOn(t, database, { data, args: ['--seal-key', seal, '--domain', 'another.example'] })
  assert.equal(JSON.parse(second.stdout()).first_run, false)
  assert.deepEqual([second.domain, second.rootFingerprint], [first.domain, first.rootFingerprint])

  await first.muster('node', 'enroll', 'gpu-001')
  assert.equal((await second.api('GET', '/v1/nodes/gpu-001')).status, 200)
  const verified = await second.muster('journal', 'verify')
  assert.equal(verified.code, 0, verified.stderr)
})

test('planes that share a data folder have sockets of their own, and the first has the one that commands look for', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const first = await startOn(t, database)
  const second = await startOn(t, database, { data: first.data })
  assert.deepEqual(
    [first, second].map(({ socket }) => path.basename(socket)),
    ['operator.sock', 'operator-2.sock'],
  )
  assert.equal((await second.api('GET', '/v1/nodes')).status, 200)
  await first.kill9()
  const again = await startOn(t, database, { data: first.data })
  assert.equal(path.basename(again.socket), 'operator.sock')
})

test('another sealing key, or none, is refused before anything is written', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const made = await runMuster(
    ['ca', 'init', '--data', path.join(tempFolder(t), 'data'), '--seal-key', sealKey(t, 'a')],
    {
      env: onDatabase(database),
    },
  )
  assert.equal(made.code, 0, made.stderr)
  const before = await rowsOf(database)
  const data = path.join(tempFolder(t), 'data')
  for (const given of [['--seal-key', sealKey(t, 'b')], []]) {
    const refused = await tryPlane(data, onDatabase(database), ...given)
    assert.equal(refused.code, 78)
    assert.match(refused.stderr, /SEALING_KEY_REFUSED/)
    assert.match(refused.stderr, /next: .*--seal-key/)
    assert.equal(await rowsOf(database), before)
    assert.equal(fs.existsSync(data), false, 'nothing was left behind')
  }
})

test('an address with a password on the command line is refused, and not repeated', async (t) => {
  const data = path.join(tempFolder(t), 'data')
  const url = 'postgres://muster:hunter2@db.example/fleet'
  const lines = [['--store', url], [`--store=${url}`], [`--stor=${url}`], ['--store', 'sqlite', url], [url]]
  for (const line of lines) {
    const refused = await tryPlane(data, {}, ...line)
    assert.equal(refused.code, 2, line.join(' '))
    assert.doesNotMatch(refused.stdout + refused.stderr, /hunter2/, line.join(' '))
  }
  assert.match((await tryPlane(data, {}, '--store', url)).stderr, /MUSTER_STORE_FILE/)
  assert.ok(!fs.existsSync(data))
})

test('a database that is not there, or that refuses the login, is reported as such, with where and what to check', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { env } = await postgresDatabase(t)
  const data = path.join(tempFolder(t), 'data')
  const tried = (changes: Record<string, string>) => tryPlane(data, { MUSTER_STORE: 'postgres', ...env, ...changes })
  const away = await tried({ PGHOST: '127.0.0.1', PGPORT: '1' })
  assert.equal(away.code, 75)
  assert.match(away.stderr, /DATABASE_UNREACHABLE/)
  assert.match(away.stderr, /127\.0\.0\.1:1.*ECONNREFUSED/s)
  for (const wrong of [{ PGDATABASE: 'no_such_database' }, { PGUSER: 'no_such_user' }]) {
    const refused = await tried(wrong)
    assert.equal(refused.code, 78)
    assert.match(refused.stderr, /DATABASE_REFUSED/)
    assert.match(refused.stderr, /no_such/)
  }
  const file = path.join(tempFolder(t), 'store')
  fs.writeFileSync(file, 'postgres://muster:hunter2@db.example/fleet', { mode: 0o600 })
  fs.chmodSync(file, 0o644)
  const open = await tried({ MUSTER_STORE_FILE: file })
  assert.equal(open.code, 2)
  assert.match(open.stderr, /chmod 600/)
})

test('a plane whose database hangs says so, decides nothing, then answers nothing, and serves again once it answers', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const plane = await startOn(t, await server.database(t))
  const readiness = async () => plane.api('GET', '/readyz')
  const isReady = async () => (await readiness()).status === 200
  await eventually('it to be ready', isReady)
  await eventually('it to lead', async () =>
    /^muster_leads 1$/m.test(String((await plane.api('GET', '/metrics')).body)),
  )

  server.pause()
  const saysSince = (standing: string) => async () => {
    const { status, body } = await readiness()
    return status === 503 && new RegExp(`^${standing}: .* \\d+ s ago$`, 'm').test(body.reasons.join('\n'))
  }
  await eventually('it to be behind', saysSince('behind'), { withinMs: 20_000, everyMs: 100 })
  const refused = await plane.api('POST', '/v1/nodes', { id: 'gpu-001' })
  assert.deepEqual([refused.status, refused.body.code], [503, 'REPLICA_BEHIND'])
  await eventually('its lease to be over', saysSince('expired'), { withinMs: 20_000, everyMs: 100 })
  const looked = await plane.api('GET', '/v1/nodes')
  assert.deepEqual([looked.status, looked.body.code], [503, 'REPLICA_BEHIND'])
  assert.equal((await plane.api('GET', '/healthz')).status, 200)

  server.resume()
  await eventually('it to be ready again', isReady, { withinMs: 30_000 })
  const made = await plane.api('POST', '/v1/nodes', { id: 'gpu-001' })
  assert.equal(made.status, 201)
})

test('several planes on one port set need PostgreSQL', async (t) => {
  const refused = await tryPlane(path.join(tempFolder(t), 'data'), {}, '--replicas', '3')
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /--store postgres/)
})

test('three planes on one port set: one banner, all of them answer, one that is killed is started again, and all end together', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const planes = await startOn(t, database, { args: ['--replicas', '3'] })
  const [line, ...more] = planes.stdout().trim().split('\n')
  assert.deepEqual(more, [])
  const banner = JSON.parse(line ?? '') as Record<string, unknown>
  assert.deepEqual([banner['replicas'], banner['first_run']], [3, true])
  const children = childrenOf(planes.pid)
  assert.equal(children.length, 3)

  // Connections are spread by the kernel: each of the three is met soon, by the certificate of its own it presents.
  const seen = new Set<string>()
  await eventually(
    'every plane to answer',
    async () => {
      const { body } = await (
        await fetch(`${planes.operatorUrl}/v1/ca`, { headers: bearer(planes), keepalive: false })
      )
        .json()
        .then((it) => ({ body: it as { server_certificate: { serial: string } } }))
      seen.add(body.server_certificate.serial)
      return seen.size === 3
    },
    { withinMs: 30_000 },
  )

  const [victim = -1] = children
  process.kill(victim, 'SIGKILL')
  await eventually('another to take its place', () => childrenOf(planes.pid).length === 3 && !isRunning(victim), {
    withinMs: 20_000,
  })
  assert.match(planes.stderr(), /"name":"plane","replica":\d,"ended":"by SIGKILL"/)
  assert.match(planes.stderr(), /"name":"plane [123]"/)
  const now = childrenOf(planes.pid)
  await planes.stop()
  for (const pid of now) assert.equal(isRunning(pid), false)
})

test('replicas that cannot reach the database while they start are started again, and the plane does not end', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const args = ['plane', '-o', 'json', '--data', path.join(tempFolder(t), 'data'), '--replicas', '2', ...free]
  const planes = startChild(t, startedCommand, args, { env: onDatabase(await server.database(t)) })
  await eventually('a replica to be started', () => childrenOf(planes.pid).length > 0, { withinMs: 60_000 })
  server.pause()
  const again = '"ended":"with exit code 75","again_in_ms":1000'
  await eventually('one to be started again', () => planes.stderr().includes(again), { withinMs: 60_000 })
  server.resume()
  await eventually('the plane to be ready', () => planes.stdout().includes('"replicas":2'), { withinMs: 60_000 })
  assert.ok(planes.running())
})

test('planes that a settings file asks for end with the process that started them, however that ends', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const file = path.join(tempFolder(t), 'plane.toml')
  fs.writeFileSync(file, 'replicas = 2\nserver_name = ["localhost", "plane.example.org"]\n', { mode: 0o644 })
  const planes = await startOn(t, await postgresDatabase(t), { args: ['--config', file] })
  const children = childrenOf(planes.pid)
  assert.equal(children.length, 2)
  await planes.kill9()
  await eventually('them to end', () => !children.some(isRunning), { withinMs: 15_000 })
})

test('keys in memory: an agent renews through a rolling restart of three planes and enrolls once', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await startOn(t, await postgresDatabase(t), { args: ['--replicas', '3', '--issuer-key', 'memory'] })
  const made = await planes.api('POST', '/v1/profiles', { name: 'brief', set: { 'certificate.lifetimeMs': 8000 } })
  assert.equal(made.status, 201)
  const agent = startAgent(t, { join: await planes.token('--node', 'gpu-001', '--profile', 'brief') })
  const renewals = async (): Promise<readonly { readonly issuer: string }[]> =>
    (await planes.api('GET', '/v1/journal?node=gpu-001&type=node.renewed&limit=500')).body.entries
  const isActive = async () => (await planes.api('GET', '/v1/nodes/gpu-001')).body.membership === 'active'
  await eventually('it to be active', isActive, { withinMs: 30_000 })

  for (const pid of childrenOf(planes.pid)) {
    const before = (await renewals()).length
    process.kill(pid, 'SIGTERM')
    await eventually('it to be back', async () => !isRunning(pid) && childrenOf(planes.pid).length === 3, {
      withinMs: 30_000,
    })
    // A renewal after it: what the planes before have signed is still good.
    await eventually('a renewal', async () => (await renewals()).length > before, { withinMs: 60_000 })
  }
  assert.ok(agent.running())
  const enrolled = await planes.api('GET', '/v1/journal?node=gpu-001&type=host.enrolled&limit=10')
  assert.equal(enrolled.body.entries.length, 1)
  // The last one that came back may still be making its own.
  await eventually('two issuers of each of three planes to be in the store', async () => {
    const { body } = await planes.api('GET', '/v1/ca')
    return body.authorities.filter(({ custody }: { custody: string }) => custody === 'memory').length >= 6
  })
})

const bearer = ({ adminKey }: Plane): Record<string, string> => ({
  authorization: `Bearer ${adminKey}`,
  connection: 'close',
})
