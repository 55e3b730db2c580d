// A real high-availability PostgreSQL: three members under Patroni, strictly synchronous, and the etcd they agree by. That
// is one etcd instead of three: what is tested is the loss of a database, not that of a vote.

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { connectPostgres, type PostgresTarget } from '#platform/postgres.ts'
import { peer } from '../peers/peer.ts'
import { startChild, type Child } from './child.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { descendantsOf, endAll, unprivilegedUser, type OwnUser } from './process-tree.ts'

export type MemberName = 'pg1' | 'pg2' | 'pg3'

export type ClusterMember = {
  readonly name: MemberName
  readonly role: 'leader' | 'sync_standby' | 'replica'
  readonly state: string
  readonly timeline: number
}

export type PatroniCluster = {
  /** All three hosts: a client connects to the one that is the primary. */
  readonly target: PostgresTarget
  /** What a plane has to have in its environment to use it. */
  readonly env: Readonly<Record<'PGHOST' | 'PGPORT' | 'PGUSER' | 'PGDATABASE' | 'PGPASSFILE' | 'PGSSLMODE', string>>
  /** As those who are there see it. */
  members(): Promise<readonly ClusterMember[]>
  /** Who holds the leader's key, dead or alive; null between two. */
  leader(): Promise<MemberName | null>
  /** SIGKILL of its Patroni, its PostgreSQL and everything they started, at once. Returns who it was. */
  killLeader(): Promise<MemberName>
  /** After `killLeader`: started again on what it had. */
  revive(member: MemberName): Promise<void>
  /** One that takes writes. */
  waitForLeader(options?: { readonly otherThan?: MemberName; readonly withinMs?: number }): Promise<MemberName>
  /** A standby without which the leader confirms nothing. */
  waitForSync(): Promise<MemberName>
  /** Receiving from the leader, so that it can be promoted next. */
  waitForStreaming(member: MemberName): Promise<void>
  /** The end of every log, for the message of a test that failed. */
  logs(): string
}

const memberNames: readonly MemberName[] = ['pg1', 'pg2', 'pg3']

/** Seconds. The shortest a leader is believed in after its death while one slow turn of a busy machine costs nobody the lead. */
const pace = { ttl: 10, loop_wait: 2, retry_timeout: 4 }

type Member = {
  readonly name: MemberName
  readonly data: string
  readonly configFile: string
  readonly sqlPort: number
  readonly restPort: number
  patroni: Child | null
}

/** Rejects where a program is missing: ask `withPeer` for `patroni`, `etcd` and `postgres` first. */
export const startPatroni = async (t: Scope): Promise<PatroniCluster> => {
  const user = unprivilegedUser()
  const folder = makeFolder(t, user)
  const passwords = { superuser: password(), replication: password(), rewind: password(), plane: password() }
  const start = (program: string, args: readonly string[], log: string): Child =>
    startChild(t, program, args, {
      cwd: folder,
      env: { HOME: folder, LC_ALL: 'C.UTF-8', LOG: path.join(folder, `${log}.log`) },
      wrapper: [...user.wrapper, 'sh', '-c', 'exec "$@" >>"$LOG" 2>&1', 'sh'],
    })
  const logs = (): string => logTails(folder)

  const etcd = await startEtcd(start, folder)
  const members: Member[] = []
  for (const name of memberNames) members.push(await prepareMember(folder, user, name, etcd.port, passwords))
  const startMember = (member: Member): void => {
    member.patroni = start(pathOf('patroni'), [member.configFile], member.name)
  }
  members.forEach(startMember)
  // Nothing of them is kept, so they are killed; the processes that use them end first.
  cleanup(t, () => endAll([...members.flatMap(processesOf), etcd.pid]))

  const memberOf = (name: MemberName): Member => {
    const found = members.find((member) => member.name === name)
    if (found === undefined) throw new Error(`${name} is no member`)
    return found
  }
  const viewOf = async (): Promise<readonly ClusterMember[]> => {
    const asked = members.filter(({ patroni }) => patroni?.running()).map(({ restPort }) => restPort)
    for (const port of asked) {
      const reply = await ask(port, '/cluster')
      if (reply?.status === 200) return reply.body.members
    }
    throw new Error('no member of the cluster answers')
  }
  const leader = async (): Promise<MemberName | null> =>
    (await viewOf()).find(({ role }) => role === 'leader')?.name ?? null
  const wait = <T>(what: string, probe: () => Promise<T>, withinMs = 60_000) =>
    eventually(what, probe, { withinMs, everyMs: 100 }).catch((error: unknown) => {
      throw new Error(`${what}: not in time\n${logs()}`, { cause: error })
    })
  const waitForLeader: PatroniCluster['waitForLeader'] = ({ otherThan, withinMs } = {}) =>
    wait(
      `a leader${otherThan === undefined ? '' : ` other than ${otherThan}`}`,
      async () => {
        const name = await leader()
        if (name === null || name === otherThan) return null
        return (await ask(memberOf(name).restPort, '/primary'))?.status === 200 ? name : null
      },
      withinMs,
    )
  const waitForSync = (): Promise<MemberName> =>
    wait('a synchronous standby', async () => {
      const found = (await viewOf()).find(({ role }) => role === 'sync_standby')
      if (found === undefined) return null
      return (await ask(memberOf(found.name).restPort, '/sync'))?.status === 200 ? found.name : null
    })

  await waitForLeader()
  await waitForSync()
  const hosts = members.map(({ sqlPort }) => ({ host: '127.0.0.1', port: sqlPort }))
  await makeDatabase(hosts, passwords)
  const passwordFile = path.join(folder, 'planes.pgpass')
  fs.writeFileSync(passwordFile, `*:*:${planes}:${planes}:${passwords.plane}\n`, { mode: 0o600 })
  return {
    target: { hosts, database: planes, user: planes, password: async () => passwords.plane, tls: null },
    env: {
      PGHOST: hosts.map(({ host }) => host).join(','),
      PGPORT: hosts.map(({ port }) => port).join(','),
      PGUSER: planes,
      PGDATABASE: planes,
      PGPASSFILE: passwordFile,
      PGSSLMODE: 'disable',
    },
    members: viewOf,
    leader,
    async killLeader() {
      const name = await waitForLeader()
      await endAll(processesOf(memberOf(name)))
      return name
    },
    async revive(name) {
      const member = memberOf(name)
      if (member.patroni?.running() === true) throw new Error(`${name} has not ended`)
      startMember(member)
    },
    waitForLeader,
    waitForSync,
    waitForStreaming: (name) =>
      wait(`${name} to stream`, async () => {
        const current = await leader()
        if (current === null || current === name) return false
        const reply = await ask(memberOf(current).restPort, '/patroni')
        const standbys: readonly Json[] = reply?.body.replication ?? []
        return standbys.some(({ application_name: who, state }) => who === name && state === 'streaming')
      }).then(() => undefined),
    logs,
  }
}

/** The role and the database of the planes; no more than an owner of their tables. */
const planes = 'muster'

// oxlint-disable-next-line typescript/no-explicit-any
type Json = any
type Passwords = Readonly<Record<'superuser' | 'replication' | 'rewind' | 'plane', string>>
type Start = (program: string, args: readonly string[], log: string) => Child

const password = (): string => randomBytes(12).toString('hex')

const pathOf = (name: 'patroni' | 'etcd' | 'postgres'): string => {
  const found = peer(name)
  if ('missing' in found) throw new Error(found.missing)
  return found.path
}

const makeFolder = (t: Scope, { uid, gid }: OwnUser): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-ha-'))
  if (uid !== null && gid !== null) fs.chownSync(folder, uid, gid)
  // Planes of other users read their password file; the data inside stays private.
  fs.chmodSync(folder, 0o755)
  cleanup(t, () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

const startEtcd = async (start: Start, folder: string): Promise<{ readonly port: number; readonly pid: number }> => {
  const [client, among] = [await freePort(), await freePort()]
  const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${among}`]
  const { pid } = start(
    pathOf('etcd'),
    [
      ...['--name', 'one', '--data-dir', path.join(folder, 'etcd')],
      ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
      ...[
        '--listen-peer-urls',
        peerUrl,
        '--initial-advertise-peer-urls',
        peerUrl,
        '--initial-cluster',
        `one=${peerUrl}`,
      ],
    ],
    'etcd',
  )
  await eventually('etcd to answer', async () => (await ask(client, '/health'))?.status === 200, {
    withinMs: 30_000,
    everyMs: 100,
  })
  return { port: client, pid }
}

const prepareMember = async (
  folder: string,
  { uid, gid }: OwnUser,
  name: MemberName,
  etcdPort: number,
  passwords: Passwords,
): Promise<Member> => {
  const [sqlPort, restPort] = [await freePort(), await freePort()]
  const data = path.join(folder, name)
  const configFile = path.join(folder, `${name}.yml`)
  // JSON is YAML, too.
  const config = {
    scope: 'muster',
    name,
    restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ...pace,
        maximum_lag_on_failover: 1_048_576,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        synchronous_node_count: 1,
        postgresql: { use_pg_rewind: true, use_slots: true, parameters: serverParameters },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
    },
    postgresql: {
      listen: `127.0.0.1:${sqlPort}`,
      connect_address: `127.0.0.1:${sqlPort}`,
      data_dir: data,
      bin_dir: path.dirname(pathOf('postgres')),
      pgpass: path.join(folder, `${name}.pgpass`),
      authentication: {
        superuser: { username: 'postgres', password: passwords.superuser },
        replication: { username: 'replicator', password: passwords.replication },
        rewind: { username: 'rewinder', password: passwords.rewind },
      },
      parameters: { unix_socket_directories: folder },
      pg_hba: ['host replication replicator 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 scram-sha-256'],
      // One that was killed has logs to replay, which a rewind needs done.
      remove_data_directory_on_rewind_failure: false,
    },
    watchdog: { mode: 'off' },
  }
  fs.writeFileSync(configFile, JSON.stringify(config, null, 2), { mode: 0o600 })
  if (uid !== null && gid !== null) fs.chownSync(configFile, uid, gid)
  return { name, data, configFile, sqlPort, restPort, patroni: null }
}

const serverParameters = {
  max_connections: 100,
  shared_buffers: '32MB',
  wal_keep_size: '256MB',
  hot_standby: 'on',
  wal_log_hints: 'on',
  // Nothing is confirmed before a standby has found the new primary: not to wait the usual five seconds for that.
  wal_retrieve_retry_interval: '500ms',
  password_encryption: 'scram-sha-256',
}

/** Its Patroni and PostgreSQL, and every process of either. */
const processesOf = ({ patroni, data }: Member): readonly number[] => {
  const roots = patroni?.running() === true ? [patroni.pid] : []
  const postmaster = postmasterOf(data)
  return descendantsOf(postmaster === null ? roots : [...roots, postmaster])
}

/** PostgreSQL outlives the Patroni that started it, and is known by the file it keeps. */
const postmasterOf = (data: string): number | null => {
  try {
    const pid = Number(fs.readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
    const [program = '', ...args] = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return program.endsWith('postgres') && args.includes(data) ? pid : null
  } catch {
    return null
  }
}

const makeDatabase = async (hosts: PostgresTarget['hosts'], { superuser, plane }: Passwords): Promise<void> => {
  const target = { hosts, database: 'postgres', user: 'postgres', password: async () => superuser, tls: null }
  const connection = await connectPostgres(target, { applicationName: 'muster test', connectWithinMs: 10_000 })
  await connection.exec(`CREATE ROLE ${planes} LOGIN PASSWORD '${plane}'`)
  await connection.exec(`CREATE DATABASE ${planes} OWNER ${planes}`)
  await connection.end()
}

/** Null: nobody answers there. */
const ask = async (port: number, where: string): Promise<{ status: number; body: Json } | null> => {
  try {
    const reply = await fetch(`http://127.0.0.1:${port}${where}`, { signal: AbortSignal.timeout(2000) })
    return { status: reply.status, body: await reply.json().catch(() => null) }
  } catch {
    return null
  }
}

const logTails = (folder: string): string =>
  fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .map((name) => `--- ${name}\n${fs.readFileSync(path.join(folder, name), 'utf8').slice(-4000)}`)
    .join('\n')
