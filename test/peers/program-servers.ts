// nginx, PostgreSQL and etcd on one host, with certificates from outputs of Muster, a helper that was started by hand, and the
// configurations of docs/programs/. All of it runs as one user that is not root.

import * as fs from 'node:fs'
import * as net from 'node:net'
import * as os from 'node:os'
import * as path from 'node:path'
import * as tls from 'node:tls'
import { joinMember, type Member } from '../process/agent-member.ts'
import { startChild, startedCommand, type Child } from '../process/child.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import { startPostgres, type PostgresServer } from '../process/postgres-server.ts'
import { descendantsOf, unprivilegedUser } from '../process/process-tree.ts'
import type { Plane } from '../process/start-plane.ts'
import { documentedArguments, documentedBlock } from './documented-block.ts'

export const servers = ['nginx', 'postgres', 'etcd'] as const
export type ServerName = (typeof servers)[number]

/** Each page of docs/programs/ has one output, one configuration of the host and one of the program. */
const pageOf = {
  nginx: 'programs/NGINX.md',
  postgres: 'programs/POSTGRESQL.md',
  etcd: 'programs/ETCD.md',
} as const satisfies Record<ServerName, string>

const outputOf = { nginx: 'web', postgres: 'db', etcd: 'kv' } as const satisfies Record<ServerName, string>

/** By which the clients know the host. */
export const hostName = 'host-1.example'

export type ServerHost = {
  readonly agent: Member
  /** Of those that serve. */
  readonly ports: Readonly<Record<ServerName, number>>
  /** The database that clients use. */
  database(): string
  /** Starts the programs, once their outputs are in place. */
  serve(): Promise<void>
  /** Of the certificate that it shows in a handshake now. */
  servedSerial(server: ServerName): Promise<string>
  /** Of the leaf that is in place for it; null: none is. */
  placedSerial(server: ServerName): string | null
  /** The processes of nginx that accept connections, those included that a reload has told to end. */
  nginxWorkers(): readonly number[]
  /** What the programs and the helper said, for a test that failed. */
  said(): string
}

type ServerOptions = {
  readonly plane: Plane
  readonly id: string
  /** As `muster ca bundle --programs` prints them. */
  readonly programsRoots: string
  /** The clock of all but etcd, which is not to be moved by a library. */
  readonly clock: Readonly<Record<string, string>>
}

/** What a profile lists for such a host, as documented; where its files go is up to the host. */
export const serverOutputs = (host: string, change: object): readonly object[] =>
  servers.map((server) => ({
    ...(JSON.parse(documentedBlock(pageOf[server], 'json', directoriesHere(host, server))) as object),
    ...change,
  }))

/** A folder that the programs can read, gone after the test. */
export const hostFolder = (t: Scope): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-host-'))
  cleanup(t, () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  for (const name of ['', 'nginx-tls', 'postgres-tls', 'etcd-tls', 'state', 'run', 'nginx', 'etcd']) {
    const each = path.join(folder, name)
    fs.mkdirSync(each, { recursive: true })
    fs.chmodSync(each, 0o755)
    const { uid, gid } = unprivilegedUser()
    if (uid !== null && gid !== null) fs.chownSync(each, uid, gid)
  }
  return folder
}

const documentedDirectory = {
  nginx: '/etc/nginx/tls',
  postgres: '/etc/postgresql/tls',
  etcd: '/etc/etcd/tls',
} as const satisfies Record<ServerName, string>

const directoriesHere = (host: string, server: ServerName): Record<string, string> => ({
  [documentedDirectory[server]]: path.join(host, `${server}-tls`),
})

export const startServerHost = async (t: Scope, host: string, options: ServerOptions): Promise<ServerHost> => {
  const { plane, id, clock, programsRoots } = options
  const { wrapper } = unprivilegedUser()
  // Set behind the change of the user: libfaketime shares its memory with those who have the same one only.
  const asUser = (env: Readonly<Record<string, string>>): string[] => [
    ...wrapper,
    'env',
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
  ]
  const ports = { nginx: await freePort(), postgres: 0, etcd: await freePort() }
  const place = (...names: string[]): string => path.join(host, ...names)
  ownFile(place('programs-roots.pem'), programsRoots)
  ownFile(place('agent.toml'), agentToml(host, plane.domain, id))
  const socket = place('run', 'socket')
  const helperArgs = ['agent', 'helper', '--config', place('agent.toml'), '--socket', socket]
  const helper = startChild(t, startedCommand, helperArgs, { wrapper: asUser(clock) })
  await eventually('the helper to be ready', () => {
    if (!helper.running()) throw new Error(`the helper ended: ${helper.stderr()}`)
    return fs.existsSync(socket)
  })
  const agent = await joinMember(t, plane, {
    id,
    profile: 'servers',
    state: place('state'),
    args: ['--helper-socket', socket],
    wrapper: asUser(clock),
  })
  let postgres: PostgresServer | null = null
  let database = ''
  const children: Child[] = [helper, agent]

  const startNginx = (): void => {
    ownFile(place('nginx', 'nginx.conf'), nginxConfiguration(host, ports.nginx))
    const args = ['-c', place('nginx', 'nginx.conf'), '-e', 'stderr', '-g', 'daemon off;']
    children.push(startChild(t, '/usr/sbin/nginx', args, { wrapper: asUser(clock) }))
  }
  const startDatabase = async (): Promise<void> => {
    const hba = documentedBlock(pageOf.postgres, 'text')
    ownFile(place('pg_hba.conf'), `local all all trust\n${hba}`)
    const settings = { ...postgresSettings(host), hba_file: place('pg_hba.conf') }
    postgres = await startPostgres(t, settings, { ...clock })
    ports.postgres = postgres.port
    fs.symlinkSync(path.join(postgres.folder, 'data'), place('postgres-data'))
    const { name, connect } = await postgres.database(t)
    database = name
    await (await connect()).exec('CREATE ROLE app LOGIN')
  }
  const startEtcd = async (): Promise<void> => {
    const peers = `http://127.0.0.1:${await freePort()}`
    const args = [
      ...documentedArguments(pageOf.etcd, 'etcd', directoriesHere(host, 'etcd')),
      ...['--name', 'one', '--data-dir', place('etcd', 'data'), '--log-level', 'warn', '--logger', 'zap'],
      ...['--listen-client-urls', `https://127.0.0.1:${ports.etcd}`],
      ...['--advertise-client-urls', `https://${hostName}:${ports.etcd}`],
      ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers, '--initial-cluster', `one=${peers}`],
    ]
    children.push(startChild(t, 'etcd', args, { wrapper: asUser({}) }))
  }
  const said = (): string =>
    [...children.map(({ stderr }) => stderr().slice(-4000)), postgres?.log().slice(-4000) ?? ''].join('\n---\n')
  return {
    agent,
    ports,
    database: () => database,
    async serve() {
      startNginx()
      await Promise.all([startDatabase(), startEtcd()])
    },
    nginxWorkers: () => {
      const main = Number(fs.readFileSync(place('nginx', 'pid'), 'utf8'))
      return descendantsOf([main]).filter((pid) => pid !== main)
    },
    servedSerial: (server) => shownSerial(server, ports[server], programsRoots),
    placedSerial: (server) => agent.says()?.outputs?.find(({ name }) => name === outputOf[server])?.serial ?? null,
    said,
  }
}

const ownFile = (file: string, content: string): void => {
  fs.writeFileSync(file, content, { mode: 0o644 })
  const { uid, gid } = unprivilegedUser()
  if (uid !== null && gid !== null) fs.chownSync(file, uid, gid)
}

const agentToml = (host: string, domain: string, id: string): string => {
  const user = JSON.stringify(String(unprivilegedUser().uid ?? process.getuid?.() ?? 0))
  const listed = (server: ServerName, here: Readonly<Record<string, string>>): string =>
    documentedBlock(pageOf[server], 'toml', { ...directoriesHere(host, server), ...here })
  return [
    `[node]\ndomain = "${domain}"\nid = "${id}"\n`,
    `[programs]\nroots = "${path.join(host, 'programs-roots.pem')}"\n`,
    listed('nginx', { '"-s"': `"-c", "${path.join(host, 'nginx', 'nginx.conf')}", "-s"` }),
    listed('postgres', { '"postgres"': user, '/var/lib/postgresql/15/main': path.join(host, 'postgres-data') }),
    listed('etcd', { '"etcd"': user }),
  ].join('\n')
}

const nginxConfiguration = (host: string, port: number): string => {
  const here = { ...directoriesHere(host, 'nginx'), 'listen 443': `listen 127.0.0.1:${port}` }
  const own = path.join(host, 'nginx')
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return [
    `pid ${path.join(own, 'pid')};`,
    `error_log stderr warn;`,
    'worker_processes 1;',
    'events { }',
    'http {',
    'access_log off;',
    ...kinds.map((kind) => `${kind}_temp_path ${path.join(own, kind)};`),
    documentedBlock(pageOf.nginx, 'nginx', here),
    '}',
    '',
  ].join('\n')
}

const postgresSettings = (host: string): Record<string, string> =>
  Object.fromEntries(
    [
      ...documentedBlock(pageOf.postgres, 'ini', directoriesHere(host, 'postgres')).matchAll(/^(\w+) = '?(.*?)'?$/gm),
    ].map(([, name = '', value = '']) => [name, value]),
  )

const shownWithinMs = 10_000

const shownSerial = async (server: ServerName, port: number, ca: string): Promise<string> => {
  const socket = net.connect(port, '127.0.0.1')
  const shown = new Promise<string>((resolve, reject) => {
    socket.once('error', reject)
    const handshake = (): void => {
      const secured = tls.connect({ socket, ca, servername: hostName })
      secured.on('error', reject)
      secured.once('secureConnect', () => resolve(serialText(secured.getPeerX509Certificate()?.serialNumber ?? '')))
    }
    if (server !== 'postgres') handshake()
    else {
      socket.write(sslRequest)
      socket.once('data', (answer) => (answer.toString() === 'S' ? handshake() : reject(new Error('no TLS'))))
    }
  })
  return within(`the certificate of ${server}`, shownWithinMs, shown).finally(() => socket.destroy())
}

/** By which a client of PostgreSQL asks for TLS, before the handshake. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** As Muster writes it. */
const serialText = (serial: string): string => serial.toLowerCase().replace(/^0+/, '')
