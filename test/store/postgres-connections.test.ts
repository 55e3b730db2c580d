// Connections to a real PostgreSQL: which servers are used, which are refused, and what is reported when one goes away.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openPgAccess, type PgAccess } from '#plane/store/postgres/pg-access.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import {
  connectPostgres,
  pgTrouble,
  type PgConnection,
  type PostgresTarget,
  type PgTrouble,
} from '#platform/postgres.ts'
import { systemTimers } from '#platform/timers.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { postgresDatabase, serverOwner, startPostgres, startStandby } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'

const patience = { applicationName: 'muster test', connectWithinMs: 5000 }
const one = { name: 'one', text: 'SELECT 1 AS one' }

const isTrouble =
  (expected: PgTrouble, words: RegExp = /./) =>
  (error: unknown): boolean => {
    assert.equal(pgTrouble(error), expected, String(error))
    assert.match(String(error), words)
    return true
  }

const connected = async (t: TestContext, target: PostgresTarget): Promise<PgConnection> => {
  const connection = await connectPostgres(target, patience)
  cleanup(t, () => connection.end())
  return connection
}

const openAccess = (t: TestContext, target: PostgresTarget): PgAccess => {
  const access = openPgAccess({ clock: systemClock, timers: systemTimers, log: silentLog }, target)
  cleanup(t, () => access.close())
  return access
}

test('numbers, bytes and lists go in and come back as they were', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const connection = await (await postgresDatabase(t)).connect()
  const echo = {
    name: 'echo',
    text: 'SELECT $1::bigint AS number, $2::bytea AS bytes, ($3::text[])[2] AS text, ($4::bytea[])[1] AS item',
  }
  const values = [9_007_199_254_740_991, new Uint8Array([0, 255]), ['a', '"\\{},\u00fc\n', null], [Buffer.from('x')]]
  const { rows, count } = await connection.run(echo, values)
  assert.deepEqual(
    [count, rows],
    [
      1,
      [{ number: 9_007_199_254_740_991, bytes: Buffer.from([0, 255]), text: '"\\{},\u00fc\n', item: Buffer.from('x') }],
    ],
  )
  await assert.rejects(connection.run(echo, [2n ** 53n, null, null, null]), /does not fit/)
})

test('settings of the role do not weaken a connection: commits wait for the standby, warnings arrive', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const role = `weak_${database.name}`
  const administrator = await database.connect()
  await administrator.exec(`CREATE ROLE ${role} LOGIN;
    ALTER ROLE ${role} SET synchronous_commit = off; ALTER ROLE ${role} SET client_min_messages = error;
    ALTER ROLE ${role} SET statement_timeout = 10; ALTER ROLE ${role} SET default_transaction_isolation = serializable`)
  cleanup(t, () => administrator.exec(`DROP ROLE ${role}`))
  const connection = await connectPostgres({ ...database.target, user: role }, patience)
  const names = ['synchronous_commit', 'client_min_messages', 'statement_timeout', 'default_transaction_isolation']
  const ask = { name: 'ask', text: 'SELECT current_setting(name) AS value FROM unnest($1::text[]) AS name' }
  const { rows } = await connection.run(ask, [names])
  assert.deepEqual(
    rows.map((row) => row['value']),
    ['on', 'warning', '0', 'read committed'],
  )
  const warnings: string[] = []
  connection.onWarning((message) => void warnings.push(message))
  await connection.exec('COMMIT')
  assert.deepEqual(warnings, ['there is no transaction in progress'])
  await connection.end()
})

test('a wrong database, user or password is distinguished from a server that is away', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const rules = path.join(tempFolder(t), 'rules')
  fs.chmodSync(path.dirname(rules), 0o755)
  fs.writeFileSync(rules, 'local all muster trust\nhost all all 127.0.0.1/32 scram-sha-256\n')
  const server = await startPostgres(t, { hba_file: rules })
  const { target, connect } = await server.database(t)
  await (await connect()).exec("CREATE ROLE guest LOGIN PASSWORD 'right'")
  const guest = { ...target, user: 'guest', hosts: [{ host: '127.0.0.1', port: server.port }] }
  const with_ = (password: string | null) => connectPostgres({ ...guest, password: async () => password }, patience)
  await (await with_('right')).end()
  await assert.rejects(with_('wrong'), isTrouble('refused', /password/))
  await assert.rejects(with_(null), isTrouble('refused', /asks for a password/))
  await assert.rejects(connectPostgres({ ...target, database: 'nowhere' }, patience), isTrouble('refused', /nowhere/))
  await server.stop('fast')
  await assert.rejects(with_('right'), isTrouble('connection', /ECONNREFUSED/))
})

test('another machine is never spoken to without TLS, and TLS always verifies the server', async (t) => {
  const withoutTls = { tls: null, password: async () => null, database: 'x', user: 'x' }
  const hosts = ['db.example', '192.0.2.1', '127.evil.example'].map((host) => ({ host, port: 5432 }))
  for (const host of hosts)
    await assert.rejects(
      connectPostgres({ ...withoutTls, hosts: [host] }, patience),
      isTrouble('refused', /would not be encrypted/),
    )
  if (withPeer(t, 'postgres') === null) return
  const folder = tempFolder(t)
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { certificate, settings } = serverCertificate(folder, openssl)
  const server = await startPostgres(t, settings)
  const { target } = await server.database(t)
  const over = (host: string, ca: string | null): PostgresTarget => ({
    ...target,
    hosts: [{ host, port: server.port }],
    tls: { ca },
  })
  const connection = await connected(t, over('localhost', certificate))
  const encrypted = { name: 'encrypted', text: 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()' }
  assert.deepEqual((await connection.run(encrypted)).rows, [{ ssl: true }])
  await assert.rejects(connectPostgres(over('127.0.0.1', certificate), patience), isTrouble('refused', /altnames/))
  await assert.rejects(connectPostgres(over('localhost', null), patience), isTrouble('refused', /self-signed/))
  connection.destroy()
  await assert.rejects(connection.run(one), isTrouble('connection'))
})

test('of several hosts the primary is used, wherever it stands; a standby alone is none', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const primary = await startPostgres(t)
  const standby = await startStandby(t, primary)
  const { target } = await primary.database(t)
  const [at, beside] = [
    { host: primary.folder, port: primary.port },
    { host: standby.folder, port: standby.port },
  ]
  const nobody = { host: '127.0.0.1', port: 1 }
  const { rows } = await (await connected(t, { ...target, hosts: [nobody, beside, at] })).run(askPort)
  assert.deepEqual(rows, [{ port: primary.port }])
  const alone = { ...target, database: 'postgres', hosts: [nobody, beside] }
  await assert.rejects(connectPostgres(alone, patience), isTrouble('connection', /not a primary/))
  await assert.rejects(openAccess(t, alone).read(one), StoreFault)
})

test('of two servers that both act as the primary all planes use the one that was promoted last', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const givenUp = await startPostgres(t)
  const { target } = await givenUp.database(t)
  const promoted = await startStandby(t, givenUp)
  const hosts = [givenUp, promoted].map(({ folder, port }) => ({ host: folder, port }))
  const access = openAccess(t, { ...target, hosts })
  const portOf = async (): Promise<unknown> => (await access.read(askPort)).rows[0]?.['port']
  assert.equal(await portOf(), givenUp.port)
  await promoted.promote()
  const moved = await access.connect('test')
  cleanup(t, () => moved.end())
  assert.deepEqual((await moved.run(askPort)).rows, [{ port: promoted.port }])
  assert.equal(await portOf(), promoted.port, 'who only reads would never notice')
  await promoted.stop('fast')
  await assert.rejects(access.connect('test'), isTrouble('connection', /another has replaced/))
  await assert.rejects(portOf(), StoreFault)
})

const askPort = { name: 'port', text: "SELECT current_setting('port')::int AS port" }

test('a host that does not answer holds up neither the next one nor its caller for long', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const silent = await startPostgres(t)
  const { target } = await postgresDatabase(t)
  silent.pause()
  const hosts = [{ host: silent.folder, port: silent.port }]
  const passedMs = fairStopwatch()
  await connected(t, { ...target, hosts: [...hosts, ...target.hosts] })
  assert(passedMs() < 2000)
  await assert.rejects(
    connectPostgres({ ...target, hosts }, { ...patience, connectWithinMs: 300 }),
    isTrouble('connection', /within 300 ms/),
  )
})

test('the end of a connection is reported once, to its waiting caller', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const [connection, other] = [await connected(t, database.target), await database.connect()]
  let ends = 0
  connection.onEnd(() => ends++)
  const { rows } = await connection.run({ name: 'pid', text: 'SELECT pg_backend_pid() AS pid' })
  const asleep = assert.rejects(connection.run({ name: 'sleep', text: 'SELECT pg_sleep(60)' }), isTrouble('connection'))
  const behind = assert.rejects(connection.run(one), isTrouble('connection'))
  await other.run({ name: 'end', text: 'SELECT pg_terminate_backend($1)' }, [Number(rows[0]?.['pid'])])
  await Promise.all([asleep, behind])
  await eventually('the end', () => connection.ended)
  await connection.end()
  connection.destroy()
  assert.equal(ends, 1)
})

test('reads go on after a restart of the server, and a server that stands still is a fault within seconds', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const { target } = await server.database(t)
  const access = openAccess(t, target)
  const readMany = () => Promise.all(Array.from({ length: 50 }, () => access.read(one)))
  await readMany()
  await server.stop('crash')
  await assert.rejects(access.read(one), StoreFault)
  await server.start()
  await readMany()
  server.pause()
  const passedMs = fairStopwatch()
  await assert.rejects(access.read(one), StoreFault)
  await assert.rejects(access.write(one), StoreFault)
  assert(passedMs() < 12_000)
  server.resume()
  await readMany()
  await access.close()
  await assert.rejects(access.read(one), StoreFault)
})

test('a warning that comes with a write makes it uncertain', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target } = await postgresDatabase(t)
  const access = openAccess(t, target)
  const warn = { name: 'warn', text: 'SELECT warned($1::text)' }
  await access.write({
    name: 'make',
    text: `CREATE FUNCTION warned(text) RETURNS void LANGUAGE plpgsql
    AS $$BEGIN RAISE WARNING '%', $1; END$$`,
  })
  await assert.rejects(access.write(warn, ['not replicated']), StoreFault)
  await access.write(one)
})

const serverCertificate = (
  folder: string,
  openssl: string,
): { certificate: string; settings: Record<string, string> } => {
  const [key, file] = [path.join(folder, 'key'), path.join(folder, 'certificate')]
  const asked = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=localhost',
  ]
  execFileSync(
    openssl,
    ['req', '-x509', ...asked, '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', file],
    {
      stdio: 'ignore',
    },
  )
  // The server takes a key of root's that its own group may read, and else only one of its own.
  fs.chmodSync(folder, 0o755)
  const { gid } = serverOwner()
  if (gid !== undefined) fs.chownSync(key, 0, gid)
  fs.chmodSync(key, gid === undefined ? 0o600 : 0o640)
  return { certificate: fs.readFileSync(file, 'utf8'), settings: { ssl: 'on', ssl_key_file: key, ssl_cert_file: file } }
}
