// What a store holds and who is at it, whether a plane runs on it or not. Looks, and takes no lock.

import * as path from 'node:path'
import { membershipKinds, type Membership } from '#domain/core/node.ts'
import { writeFaultOf } from '#platform/disk-space.ts'
import { readFileIfAny, sizeOf } from '#platform/files.ts'
import type { PostgresTarget } from '#platform/postgres.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { waitsFor } from '#plane/store/postgres/schema-gate.ts'
import { newestSchema } from '#plane/store/sqlite/migrations.ts'
import { openSqliteSql } from '#plane/store/sqlite/sqlite-sql.ts'
import type { Sql, SqlRow } from '#plane/store/sql/sql.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { connectForCopy, postgresAccess, sqlOn } from './open-postgres.ts'
import { databaseFile, openSqliteToRead } from './open-sqlite.ts'

export type StoreStatus = {
  readonly store: 'sqlite' | 'postgres'
  /** A file, or hosts and database: never a password. */
  readonly place: string
  /** Null: a database with nothing in it. */
  readonly schema: number | null
  readonly newestSchema: number
  readonly bytes: number
  /** Null: it can be written to, as far as is known without a write. */
  readonly writeFault: string | null
  /** Null: there is nothing, or it is SQLite with an older schema. */
  readonly content: StoreContent | null
  readonly replicas: readonly LeasedReplica[]
  /** Replicas of the release before that keep the store on its schema, each with its release. */
  readonly upgradeWaitsFor: readonly string[]
}

export type StoreContent = {
  /** Null: there is none yet. */
  readonly domain: string | null
  readonly nodes: Readonly<Record<Membership['kind'], number>>
  readonly tokens: number
  readonly certificates: number
  readonly denials: number
  readonly entries: number
  readonly chains: readonly StoredChain[]
}

export type StoredChain = {
  readonly chain: string
  readonly sequence: number
  /** Hex. */
  readonly hash: string
  /** The replica that writes it; null: none, or there is only one. */
  readonly writer: number | null
}

export type LeasedReplica = {
  readonly number: number
  readonly name: string
  readonly version: string | null
  readonly leaseMs: number | null
  readonly leads: boolean
}

export const storeStatus = async (config: PlaneConfig): Promise<StoreStatus> =>
  config.store.kind === 'sqlite' ? statusOfSqlite(config.dataFolder) : statusOfPostgres(config.store.target)

const statusOfSqlite = async (folder: string): Promise<StoreStatus> => {
  const file = databaseFile(folder)
  const { database, schema } = openSqliteToRead(folder)
  try {
    // One moment for all of it.
    database.exec('BEGIN')
    const sql = openSqliteSql(database, () => {})
    return {
      store: 'sqlite',
      place: file,
      schema,
      newestSchema,
      bytes: sizeOf(file) + sizeOf(`${file}-wal`),
      writeFault: writeFaultOf(folder) ?? writeFaultOf(file),
      content: schema === newestSchema ? await contentOf(sql, 'NULL') : null,
      replicas: planeOf(folder),
      upgradeWaitsFor: [],
    }
  } finally {
    database.close()
  }
}

/** By what the plane itself wrote down: its lock is not tried. */
const planeOf = (folder: string): readonly LeasedReplica[] => {
  const pid = Number(readFileIfAny(path.join(folder, 'plane.pid')))
  if (!Number.isSafeInteger(pid) || pid <= 0 || !stillRuns({ pid, birth: null })) return []
  return [{ number: 1, name: `process ${pid}`, version: null, leaseMs: null, leads: true }]
}

const statusOfPostgres = async (target: PostgresTarget): Promise<StoreStatus> => {
  const connection = await connectForCopy(postgresAccess(target), 'store status')
  try {
    await connection.exec('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const { version, newest } = await schemaOf(connection)
    const sql = sqlOn(connection)
    const isOurs = version !== null
    const [size] = await sql.read(databaseSize)
    const replicas = isOurs ? await leasedIn(sql) : []
    return {
      store: 'postgres',
      place: `${target.hosts.map(({ host, port }) => `${host}:${port}`).join(',')}/${target.database} as ${target.user}`,
      schema: version,
      newestSchema: newest,
      bytes: Number(size?.['bytes']),
      writeFault: isOurs ? await rightsMissing(sql) : null,
      // What is counted is in every schema since the first.
      content: isOurs ? await contentOf(sql, 'writer') : null,
      replicas,
      upgradeWaitsFor: waitsFor(version, replicas),
    }
  } finally {
    await connection.end()
  }
}

type Reading = Pick<Sql, 'read' | 'dialect'>

const databaseSize = { name: 'status-size', text: 'SELECT pg_database_size(current_database()) AS bytes' }

/** A connection exists only to a primary that can be written to. */
const rightsMissing = async (sql: Reading): Promise<string | null> => {
  const text = "SELECT has_table_privilege('journal', 'INSERT') AS may"
  const [found] = await sql.read({ name: 'status-rights', text })
  return found?.['may'] === true ? null : 'this user may not write to the journal'
}

const leasedIn = async (sql: Reading): Promise<readonly LeasedReplica[]> => {
  const rows = await sql.read({
    name: 'status-leased',
    text: `SELECT number, name, version, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint AS lease_ms,
        number = (SELECT replica FROM leadership) AS leads
      FROM replica WHERE expires_at > clock_timestamp() ORDER BY number`,
  })
  return rows.map((row) => ({
    number: Number(row['number']),
    name: String(row['name']),
    version: String(row['version']),
    leaseMs: Number(row['lease_ms']),
    leads: row['leads'] === true,
  }))
}

/** `writer`: the column that says which replica writes a chain, or nothing that does. */
const contentOf = async (sql: Reading, writer: 'writer' | 'NULL'): Promise<StoreContent> => {
  const count = async (table: string): Promise<number> => {
    const [found] = await sql.read({ name: `status-count-${table}`, text: `SELECT count(*) AS count FROM ${table}` })
    return Number(found?.['count'])
  }
  const [domain] = await sql.read({ name: 'status-domain', text: 'SELECT doc FROM domain' })
  const memberships = await sql.read({
    name: 'status-nodes',
    text: 'SELECT membership, count(*) AS count FROM node GROUP BY membership',
  })
  const nodes = Object.fromEntries(
    membershipKinds.map((kind) => [
      kind,
      Number(memberships.find((row) => row['membership'] === kind)?.['count'] ?? 0),
    ]),
  ) as StoreContent['nodes']
  const chains = await sql.read({
    name: 'status-chains',
    text: `SELECT chain, sequence, hash, ${writer} AS writer FROM chain ORDER BY chain`,
  })
  return {
    domain: domain === undefined ? null : (JSON.parse(String(domain['doc'])) as { name: string }).name,
    nodes,
    tokens: await count('token'),
    certificates: await count('certificate'),
    denials: await count('denial'),
    entries: await count(sql.dialect.entries),
    chains: chains.map(chainOf),
  }
}

const chainOf = (row: SqlRow): StoredChain => ({
  chain: String(row['chain']),
  sequence: Number(row['sequence']),
  hash: Buffer.from(row['hash'] as Uint8Array).toString('hex'),
  writer: row['writer'] === null ? null : Number(row['writer']),
})
