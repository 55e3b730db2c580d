// What a store holds and who is at it, whether a plane runs on it or not. Looks, and takes no lock.

import * as path from 'node:path'
import { membershipKinds, type Membership } from '#domain/core/node.ts'
import { writeFaultOf } from '#platform/disk-space.ts'
import { readFileIfAny, sizeOf } from '#platform/files.ts'
import type { PostgresTarget } from '#platform/postgres.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { readablePostgres } from './postgres-place.ts'
import { databaseFile, openSqliteToRead, readableSqlite } from './sqlite-place.ts'
import type { ReadableStore, StoredRow } from './stored-records.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { connectForTransfer, newestSchemas, postgresAccess } from './transfer-store.ts'

export type StoreStatus = {
  readonly store: 'sqlite' | 'postgres'
  /** A file, or hosts and database: never a password. */
  readonly place: string
  /** Null: a database with nothing in it. */
  readonly schema: number | null
  readonly newestSchema: number
  readonly bytes: number
  /** Null: it can be written to, as far as can be told without doing so. */
  readonly writeFault: string | null
  /** Null: its schema is another than this release's, so nothing else is known. */
  readonly content: StoreContent | null
  readonly replicas: readonly LeasedReplica[]
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
  /** The replica that writes it; null: nobody, or there is only one. */
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
  const newest = newestSchemas.sqlite
  try {
    // One moment for all of it.
    database.exec('BEGIN')
    const store = readableSqlite(database, async () => new Map())
    return {
      store: 'sqlite',
      place: file,
      schema,
      newestSchema: newest,
      bytes: sizeOf(file) + sizeOf(`${file}-wal`),
      writeFault: writeFaultOf(folder) ?? writeFaultOf(file),
      content: schema === newest ? await contentOf(store, sqliteHeads) : null,
      replicas: planeOf(folder),
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
  const session = await connectForTransfer(postgresAccess(target), 'store status')
  try {
    await session.exec('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const { version, newest } = await schemaOf(session)
    const store = readablePostgres(session)
    const current = version === newest
    const [size] = await store.query('SELECT pg_database_size(current_database()) AS bytes', [])
    return {
      store: 'postgres',
      place: `${target.hosts.map(({ host, port }) => `${host}:${port}`).join(',')}/${target.database} as ${target.user}`,
      schema: version,
      newestSchema: newest,
      bytes: Number(size?.['bytes']),
      writeFault: current ? await rightsMissing(store) : null,
      content: current ? await contentOf(store, postgresHeads) : null,
      replicas: current ? await leasedIn(store) : [],
    }
  } finally {
    await session.end()
  }
}

/** Whoever can connect here at all has found a primary that can be written to. */
const rightsMissing = async (store: ReadableStore): Promise<string | null> => {
  const [found] = await store.query("SELECT has_table_privilege('journal', 'INSERT') AS may", [])
  return found?.['may'] === true ? null : 'this user may not write to the journal'
}

const leasedIn = async (store: ReadableStore): Promise<readonly LeasedReplica[]> => {
  const rows = await store.query(
    `SELECT number, name, version, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint AS lease_ms,
       number = (SELECT replica FROM leadership) AS leads
     FROM replica WHERE expires_at > clock_timestamp() ORDER BY number`,
    [],
  )
  return rows.map((row) => ({
    number: Number(row['number']),
    name: String(row['name']),
    version: String(row['version']),
    leaseMs: Number(row['lease_ms']),
    leads: row['leads'] === true,
  }))
}

const sqliteHeads = `SELECT chain, coalesce((SELECT max(sequence) FROM journal), sequence) AS sequence,
  coalesce((SELECT hash FROM journal ORDER BY sequence DESC LIMIT 1), hash) AS hash, NULL AS writer FROM journal_base`
const postgresHeads = 'SELECT chain, sequence, hash, writer FROM chain ORDER BY chain'

const contentOf = async (store: ReadableStore, heads: string): Promise<StoreContent> => {
  const count = async (table: string): Promise<number> =>
    Number((await store.query(`SELECT count(*) AS count FROM ${table}`, []))[0]?.['count'])
  const [domain] = await store.query('SELECT doc FROM domain', [])
  const memberships = await store.query('SELECT membership, count(*) AS count FROM node GROUP BY membership', [])
  const nodes = Object.fromEntries(
    membershipKinds.map((kind) => [
      kind,
      Number(memberships.find((row) => row['membership'] === kind)?.['count'] ?? 0),
    ]),
  ) as StoreContent['nodes']
  return {
    domain: domain === undefined ? null : (JSON.parse(String(domain['doc'])) as { name: string }).name,
    nodes,
    tokens: await count('token'),
    certificates: await count('certificate'),
    denials: await count('denial'),
    entries: await count('journal'),
    chains: (await store.query(heads, [])).map(chainOf),
  }
}

const chainOf = (row: StoredRow): StoredChain => ({
  chain: String(row['chain']),
  sequence: Number(row['sequence']),
  hash: Buffer.from(row['hash'] as Uint8Array).toString('hex'),
  writer: row['writer'] === null ? null : Number(row['writer']),
})
