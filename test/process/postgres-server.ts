// A real PostgreSQL for tests: one server a run, a fresh database for each test that asks.

import { execFile, spawn, type ChildProcess } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { promisify } from 'node:util'
import { migrateDatabase } from '#plane/store/postgres/run-migrations.ts'
import { connectPostgres, type PgConnection, type PostgresTarget } from '#platform/postgres.ts'
import { peer } from '../peers/peer.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually, within } from './eventually.ts'
import { freePort } from './free-port.ts'

export type TestDatabase = {
  readonly name: string
  readonly target: PostgresTarget
  /** What a plane has to have in its environment to use it. */
  readonly env: {
    readonly PGHOST: string
    readonly PGPORT: string
    readonly PGUSER: string
    readonly PGDATABASE: string
  }
  /** Ends with the test. */
  connect(): Promise<PgConnection>
}

export type PostgresServer = {
  /** With the Unix socket. The server also listens on this port of 127.0.0.1. */
  readonly folder: string
  readonly port: number
  readonly user: string
  readonly pid: number
  /** Goes with the server. */
  database(t: Scope): Promise<TestDatabase>
  /** Every process of it stands still, and connections stay open. */
  pause(): void
  resume(): void
  /** `fast` ends connections and keeps what is committed; `crash` is SIGKILL, and a repair at the next start. */
  stop(how: 'fast' | 'crash'): Promise<void>
  /** After `stop`: the same data, the same addresses. */
  start(): Promise<void>
  /** A standby becomes a primary, without a word to the one it has followed, which goes on. */
  promote(): Promise<void>
  /** What the server wrote to its log. */
  log(): string
}

type Place = Pick<PostgresServer, 'folder' | 'port' | 'user'>

/** Names the server of this run to the processes of its tests. */
export const postgresVariable = 'MUSTER_TEST_POSTGRES'
export const placeText = ({ folder, port, user }: Place): string => JSON.stringify({ folder, port, user })

const superuser = 'muster'
const endsWithinMs = 20_000

/** Rejects where there is no PostgreSQL: ask `withPeer(t, 'postgres')` first. */
export const startPostgres = async (t: Scope, settings: Settings = {}, env: Settings = {}): Promise<PostgresServer> =>
  endedWith(t, await makeServer(settings, 'empty', env))

/** Follows its primary by streaming, and takes no writes. */
export const startStandby = async (t: Scope, primary: Place, settings: Settings = {}): Promise<PostgresServer> =>
  endedWith(t, await makeServer(settings, primary))

const endedWith = (t: Scope, { server, remove }: Made): PostgresServer => {
  cleanup(t, async () => {
    await server.stop('fast')
    remove()
  })
  return server
}

/** In the server of this run, or in one of this process where a test is run alone; goes after the test. */
export const postgresDatabase = async (t: Scope, content: 'empty' | 'migrated' = 'empty'): Promise<TestDatabase> => {
  const given = process.env[postgresVariable]
  const place = given === undefined ? await ownServer() : (JSON.parse(given) as Place)
  const database = await makeDatabase(place, content === 'empty' ? 'template0' : await migratedTemplate(place))
  // Without waiting for it: the server writes everything down before it lets a database go.
  cleanup(t, () => void administer(place, `DROP DATABASE IF EXISTS ${database.name} WITH (FORCE)`).catch(() => {}))
  return connectable(t, database)
}

let own: Promise<PostgresServer> | null = null

const ownServer = (): Promise<PostgresServer> => {
  own ??= makeServer({}, 'empty').then(({ server }) => server)
  return own
}

/** Whatever becomes of the tests of this process: no server outlives it. */
const endings: (() => void)[] = []
process.once('exit', () => endings.forEach((end) => end()))

type Settings = Readonly<Record<string, string>>
type Made = { readonly server: PostgresServer; remove(): void }

/** `env`: of the server, besides what it needs. */
const makeServer = async (settings: Settings, from: 'empty' | Place, env: Settings = {}): Promise<Made> => {
  const found = peer('postgres')
  if ('missing' in found) throw new Error(found.missing)
  const owner = serverOwner()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-pg-'))
  const remove = (): void => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  if (owner.uid !== undefined && owner.gid !== undefined) fs.chownSync(folder, owner.uid, owner.gid)
  // Planes under other users connect, too; the data inside stays private.
  fs.chmodSync(folder, 0o755)
  const data = path.join(folder, 'data')
  const [maker, ...asked] = from === 'empty' ? initial(data) : copied(data, from)
  await promisify(execFile)(path.join(path.dirname(found.path), maker), asked, { ...owner, cwd: folder })
  const place: Place = { folder, port: await freePort(), user: superuser }
  const logFile = path.join(folder, 'log')
  let running = await startProcess(found.path, owner, data, place, settings, env)
  endings.push(() => {
    running.kill('SIGKILL')
    remove()
  })
  const server: PostgresServer = {
    ...place,
    get pid() {
      return running.pid ?? -1
    },
    database: async (scope) => connectable(scope, await makeDatabase(place, 'template0')),
    pause: () => signalAll(running, 'SIGSTOP'),
    resume: () => signalAll(running, 'SIGCONT'),
    async stop(how) {
      if (running.exitCode !== null || running.signalCode !== null) return
      const ended = new Promise((resolve) => running.once('exit', resolve))
      if (how === 'fast') {
        signalAll(running, 'SIGCONT')
        running.kill('SIGINT')
      } else signalAll(running, 'SIGKILL')
      await within('PostgreSQL to end', endsWithinMs, ended)
    },
    async start() {
      // A process that was just being made when the others were killed ends by itself, and holds the memory of the server until then.
      running = await eventually(
        'the server to start',
        () => startProcess(found.path, owner, data, place, settings, env),
        { withinMs: 3 * endsWithinMs },
      )
    },
    async promote() {
      fs.writeFileSync(path.join(data, 'promote'), '')
      running.kill('SIGUSR1')
      await eventually('the standby to be a primary', () => administer(place, 'SELECT').then(() => true))
    },
    log: () => fs.readFileSync(logFile, 'utf8'),
  }
  return { server, remove }
}

type Command = readonly [program: string, ...args: string[]]

const initial = (data: string): Command => {
  const options = ['-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']
  return ['initdb', '-D', data, '-U', superuser, ...options]
}

const copied = (data: string, { folder, port, user }: Place): Command => {
  const source = ['-h', folder, '-p', String(port), '-U', user]
  return ['pg_basebackup', '-D', data, ...source, '--write-recovery-conf', '--checkpoint=fast', '--no-sync']
}

type Owner = { readonly uid?: number; readonly gid?: number }

/** The server refuses to run as root; empty: it runs as the user of this process. */
export const serverOwner = (): Owner => {
  if (process.getuid?.() !== 0) return {}
  const users = fs
    .readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  if (user === undefined) throw new Error('there is no user that PostgreSQL could run as')
  return { uid: Number(user[2]), gid: Number(user[3]) }
}

const startProcess = async (
  program: string,
  owner: Owner,
  data: string,
  place: Place,
  settings: Settings,
  env: Settings,
): Promise<ChildProcess> => {
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(place.port),
    unix_socket_directories: place.folder,
    max_connections: '300',
    shared_buffers: '64MB',
    ...settings,
  }
  const log = fs.openSync(path.join(place.folder, 'log'), 'a')
  const child = spawn(
    program,
    ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    {
      ...owner,
      cwd: place.folder,
      stdio: ['ignore', log, log],
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C.UTF-8', ...env },
    },
  )
  fs.closeSync(log)
  // A test file that is run alone ends when its tests have, and takes the server along.
  child.unref()
  await eventually(
    'PostgreSQL to accept connections',
    async () => {
      if (child.exitCode !== null) return 'ended'
      return acceptsConnections(place)
    },
    { withinMs: 30_000, everyMs: 50 },
  ).then((state) => {
    if (state === 'ended')
      throw new Error(`PostgreSQL ended:\n${fs.readFileSync(path.join(place.folder, 'log'), 'utf8')}`)
  })
  return child
}

const acceptsConnections = async (place: Place): Promise<'ready'> => {
  try {
    await (await connectPostgres(targetOf(place, 'postgres'), patience)).end()
  } catch (error) {
    if (!(error instanceof Error && error.name === 'NotAPrimary')) throw error
  }
  return 'ready'
}

const patience = { applicationName: 'muster test', connectWithinMs: 5000 }

const targetOf = ({ folder, port, user }: Place, database: string): PostgresTarget => ({
  hosts: [{ host: folder, port }],
  database,
  user,
  password: async () => null,
  tls: null,
})

const makeDatabase = async (place: Place, template: string): Promise<Omit<TestDatabase, 'connect'>> => {
  const name = `test_${process.pid}_${Math.random().toString(36).slice(2, 10)}`
  await administer(place, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  const env = { PGHOST: place.folder, PGPORT: String(place.port), PGUSER: place.user, PGDATABASE: name }
  return { name, target: targetOf(place, name), env }
}

let template: Promise<string> | null = null

/** A copy of it takes half as long as migrating another. Made once a server, by whichever process needs it first. */
const migratedTemplate = (place: Place): Promise<string> => {
  template ??= makeTemplate(place)
  return template
}

const makeTemplate = async (place: Place): Promise<string> => {
  const name = 'muster_template'
  const connection = await connectPostgres(targetOf(place, 'postgres'), patience)
  await connection.exec('SELECT pg_advisory_lock(1)')
  const there = { name: 'there', text: 'SELECT FROM pg_database WHERE datname = $1' }
  if ((await connection.run(there, [name])).count === 0) {
    await connection.exec(`CREATE DATABASE ${name}_unfinished TEMPLATE template0`)
    const connect = (): Promise<PgConnection> => connectPostgres(targetOf(place, `${name}_unfinished`), patience)
    await migrateDatabase({ connect })
    await connection.exec(`ALTER DATABASE ${name}_unfinished RENAME TO ${name}`)
  }
  await connection.end()
  return name
}

const connectable = (t: Scope, database: Omit<TestDatabase, 'connect'>): TestDatabase => ({
  ...database,
  async connect() {
    const connection = await connectPostgres(database.target, patience)
    cleanup(t, () => connection.end())
    return connection
  },
})

const administer = async (place: Place, sql: string): Promise<void> => {
  const connection = await connectPostgres(targetOf(place, 'postgres'), patience)
  await connection.exec(sql)
  await connection.end()
}

/** Backends are in sessions of their own, so they are found as children of the first process. */
const signalAll = (server: ChildProcess, signal: NodeJS.Signals): void => {
  const children = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => parentOf(pid) === server.pid)
  // The first process first: it replaces what dies.
  for (const pid of [server.pid, ...children.map(Number)]) {
    try {
      if (pid !== undefined) process.kill(pid, signal)
    } catch {
      // It ended by itself meanwhile.
    }
  }
}

const parentOf = (pid: string): number | null => {
  try {
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1])
  } catch {
    return null
  }
}
