// PostgreSQL as the store needs it: connections to a primary and nothing else, statements that are parsed once, and errors
// distinguished by what can be done about them.

import { Socket } from 'node:net'
import { getCACertificates, type ConnectionOptions } from 'node:tls'
import { Client, DatabaseError } from 'pg'
import { isNewer, type NewestPrimary, type Timeline } from './newest-primary.ts'
import { openConnection, PgConnectionLost } from './postgres-connection.ts'
import { systemTimers } from './timers.ts'

export type PostgresHost = { readonly host: string; readonly port: number }

/** Where the database is. Several hosts are the members of one cluster: whichever of them is the primary is used. */
export type PostgresTarget = {
  /** A host that begins with `/` is a folder with a Unix socket. */
  readonly hosts: readonly PostgresHost[]
  readonly database: string
  readonly user: string
  /** Asked at every connection, so that a changed password file is seen; null: none is needed. */
  readonly password: (at: PostgresHost) => Promise<string | null>
  /** Null: no TLS, which only a Unix socket or a loopback address may do without. Always verified, name included. */
  readonly tls: { readonly ca: string | null } | null
}

/** Parsed once a connection, under this name. */
export type Prepared = { readonly name: string; readonly text: string }

export type PgValue = string | number | bigint | boolean | Uint8Array | null | readonly PgValue[]
export type PgRow = Readonly<Record<string, unknown>>
/** `count`: rows returned or changed. */
export type PgResult = { readonly rows: readonly PgRow[]; readonly count: number }

/** One connection. Statements run in the order they are given; BIGINT comes back as a number. */
export type PgConnection = {
  run(statement: Prepared, values?: readonly PgValue[]): Promise<PgResult>
  /** Several statements without values, such as BEGIN or a schema. */
  exec(sql: string): Promise<void>
  onNotification(run: (channel: string, payload: string) => void): void
  /** Warnings of the server: one that comes with a COMMIT may say that it was not replicated. */
  onWarning(run: (message: string) => void): void
  /** Once, however it ends. */
  onEnd(run: (error: unknown) => void): void
  readonly ended: boolean
  /** Cuts the connection at once, also with a statement under way. */
  destroy(): void
  end(): Promise<void>
}

export type PgTrouble =
  /** A unique value is taken. */
  | 'unique'
  /** Try the transaction again: a deadlock, a serialization failure, a lock that was not had in time. */
  | 'again'
  /** The connection is gone, cannot be made, or no longer leads to a primary. */
  | 'connection'
  /** Name, password, database, rights. */
  | 'refused'
  /** The disk of the server is full, or fails. */
  | 'disk'
  /** The server works and does not accept this statement or its values: a fault of this program, or input that it should have refused. */
  | 'statement'
  | 'other'

export type ConnectOptions = {
  /** How the server's own lists name this connection. */
  readonly applicationName: string
  /** All hosts together. */
  readonly connectWithinMs: number
  /** Of the server, for this connection. */
  readonly settings?: Readonly<Record<string, string>>
  /** Of all connections of one program: where there are several hosts, none is to a server that another has replaced. */
  readonly newest?: NewestPrimary
}

/** Reachable, and not to be used. */
class PgRefused extends Error {
  constructor(why: string, cause?: unknown) {
    super(why, { cause })
    this.name = 'PgRefused'
  }
}

class NotAPrimary extends Error {
  constructor(host: string, what = 'is not a primary that can be written to') {
    super(`${host} ${what}`)
    this.name = 'NotAPrimary'
  }
}

/**
 * Overrules settings of the role or the database. Warnings have to arrive, because a COMMIT without its standby reports only a
 * warning. A statement that is cancelled while it waits for that standby looks committed, so nothing may cancel one. A plane
 * whose machine is gone must not keep its locks for hours.
 */
const settingsOfAll: Readonly<Record<string, string>> = {
  bytea_output: 'hex',
  client_min_messages: 'warning',
  default_transaction_isolation: 'read committed',
  idle_session_timeout: '0',
  statement_timeout: '0',
  synchronous_commit: 'on',
  tcp_keepalives_count: '3',
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  transaction_timeout: '0',
}

/** How long the other hosts are waited for when one says that it is the primary: it may have been replaced. */
const otherHostsMs = 400
const keepAliveAfterMs = 5000

/** Whichever host is a primary and can be written to; of several that say so the one that was promoted last. */
export const connectPostgres = async (target: PostgresTarget, options: ConnectOptions): Promise<PgConnection> => {
  const settled = new AbortController()
  const cancelDeadline = systemTimers.after(options.connectWithinMs, () =>
    settled.abort(new PgConnectionLost(`no answer within ${options.connectWithinMs} ms`)),
  )
  const attempts = target.hosts.map((at) => connectHost(target, at, options, settled.signal))
  let chosen: Found | null = null
  try {
    chosen = await newestOf(attempts)
    return admitted(chosen, options)
  } catch (error) {
    throw mostSpecific(error instanceof AggregateError ? error.errors : [error])
  } finally {
    cancelDeadline()
    settled.abort(new Error('another host was chosen'))
    for (const attempt of attempts)
      attempt.then(
        (found) => found !== chosen && found.connection.destroy(),
        () => {},
      )
  }
}

/** `timeline`: null where no other server could be the primary. */
type Found = { readonly connection: PgConnection; readonly host: string; readonly timeline: Timeline | null }

const newestOf = async (attempts: readonly Promise<Found>[]): Promise<Found> => {
  const found: Found[] = []
  const all = Promise.allSettled(attempts.map((attempt) => attempt.then((one) => found.push(one))))
  await Promise.any(attempts)
  await new Promise<void>((resolve) => {
    const cancel = systemTimers.after(otherHostsMs, resolve)
    void all.then(() => {
      cancel()
      resolve()
    })
  })
  return found.reduce((best, one) =>
    best.timeline !== null && one.timeline !== null && isNewer(one.timeline, best.timeline) ? one : best,
  )
}

const admitted = ({ connection, host, timeline }: Found, { newest }: ConnectOptions): PgConnection => {
  if (timeline === null || newest === undefined || newest.admit(connection, timeline)) return connection
  connection.destroy()
  throw new NotAPrimary(host, 'is a primary that another has replaced')
}

/** A wrong password says more than a standby beside it, and a standby more than a host that is down. */
const mostSpecific = (errors: readonly unknown[]): unknown =>
  errors.find((error) => pgTrouble(error) === 'refused') ??
  errors.find((error) => error instanceof NotAPrimary) ??
  errors[0]

const connectHost = async (
  target: PostgresTarget,
  { host, port }: PostgresHost,
  options: ConnectOptions,
  settled: AbortSignal,
): Promise<Found> => {
  settled.throwIfAborted()
  const socket = new Socket()
  const client = new Client({
    host,
    port,
    database: target.database,
    user: target.user,
    password: () => passwordOf(target, { host, port }),
    application_name: options.applicationName,
    ssl: tlsFor(target, host),
    sslnegotiation: 'postgres',
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    stream: () => socket,
    // Statements are sent as they are given, without waiting for the answer to the one before.
    pipeline: true,
  })
  const connection = openConnection(client, socket)
  const give = (): void => connection.destroy()
  settled.addEventListener('abort', give)
  try {
    await client.connect()
    await prepare(connection, host, options)
    const timeline = target.hosts.length === 1 ? null : await timelineOf(connection)
    settled.throwIfAborted()
    return { connection, host, timeline }
  } catch (error) {
    connection.destroy()
    settled.throwIfAborted()
    throw refusalOf(error) ?? (isServerAnswer(error) ? error : new PgConnectionLost(error))
  } finally {
    settled.removeEventListener('abort', give)
  }
}

const isServerAnswer = (error: unknown): boolean => error instanceof DatabaseError || error instanceof NotAPrimary

const prepare = async (connection: PgConnection, host: string, options: ConnectOptions): Promise<void> => {
  const settings = Object.entries({ ...settingsOfAll, ...options.settings })
  // Asked first: a server whose default is to write nothing is none to write to.
  const [state] = await Promise.all([
    connection.run(askState),
    connection.run(applySettings, [settings.map(([name]) => name), settings.map(([, value]) => value)]),
  ])
  if (state.rows[0]?.['writable'] !== true) throw new NotAPrimary(host)
}

/** Servers differ in what can be set: what one does not know needs no overruling. */
const applySettings: Prepared = {
  name: 'apply-settings',
  text: `SELECT set_config(name, value, false) FROM unnest($1::text[], $2::text[]) AS wanted (name, value)
    WHERE current_setting(name, true) IS NOT NULL`,
}

const askState: Prepared = {
  name: 'ask-state',
  text: `SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AS writable`,
}

/** Not asked where there is no choice: what calls itself PostgreSQL does not always have an answer. */
const timelineOf = async (connection: PgConnection): Promise<Timeline> => {
  const { rows } = await connection.run(askTimeline)
  return rows[0] as Timeline
}

const askTimeline: Prepared = {
  name: 'ask-timeline',
  text: `SELECT system_identifier::text AS cluster, left(pg_walfile_name(pg_current_wal_lsn()), 8) AS number
    FROM pg_control_system()`,
}

const passwordOf = async (target: PostgresTarget, at: PostgresHost): Promise<string> => {
  const password = await target.password(at)
  if (password === null) throw new PgRefused('the server asks for a password, and none was given')
  return password
}

/** A Unix socket has no use for TLS; whatever leaves this machine has it. */
const tlsFor = ({ tls }: PostgresTarget, host: string): ConnectionOptions | false => {
  if (host.startsWith('/')) return false
  if (tls !== null)
    return { ca: tls.ca ?? getCACertificates('system'), rejectUnauthorized: true, minVersion: 'TLSv1.2' }
  if (isLoopback(host)) return false
  throw new PgRefused(`${host} is another machine, and the connection would not be encrypted`)
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)

/** What the driver and Node report without a number of SQL: a certificate that does not convince, a server without TLS. */
const refusalOf = (error: unknown): PgRefused | null => {
  const cause = error instanceof PgConnectionLost ? error.cause : error
  if (!(cause instanceof Error) || cause instanceof DatabaseError) return null
  if (cause instanceof PgRefused) return cause
  const code = 'code' in cause ? String(cause.code) : ''
  const ofTls =
    /^(ERR_TLS_|ERR_SSL_|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_)/.test(code) || / SSL connection/.test(cause.message)
  return ofTls || cause.message.startsWith('SASL:') ? new PgRefused(cause.message, cause) : null
}

export const pgTrouble = (error: unknown): PgTrouble => {
  if (error instanceof PgRefused) return 'refused'
  if (error instanceof PgConnectionLost || error instanceof NotAPrimary) return 'connection'
  if (!(error instanceof DatabaseError)) return 'other'
  const code = error.code ?? ''
  if (code === '23505') return 'unique'
  if (['40001', '40P01', '55P03'].includes(code)) return 'again'
  if (isOfConnection(code)) return 'connection'
  if (code === '53100' || code === '58030') return 'disk'
  if (/^(28|3D|42501)/.test(code)) return 'refused'
  return /^(0A|2[0-3]|42|54)/.test(code) ? 'statement' : 'other'
}

/** 57P: the server stops, or has not started; 25006: it has become a standby; 25P03: we were silent too long. */
const isOfConnection = (code: string): boolean => /^(08|57P)/.test(code) || ['25006', '25P03', '53300'].includes(code)
