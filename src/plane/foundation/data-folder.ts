// Examines a data folder before a plane starts on it. It only reads: no file is made, changed or removed here, and the write-ahead
// log is not folded in. Unknown files are ignored.

import * as path from 'node:path'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import { errno, readFileIfAny, removeFile, requireAccess, sizeOf } from '#platform/files.ts'
import { createFile, namesIn } from '#platform/folder.ts'
import { pathExists } from '#platform/paths.ts'
import { openDatabaseToRead, openFinishedDatabase, sqliteTrouble, type Database } from '#platform/sqlite.ts'
import { keyNameOfSealed } from '#plane/keys/key-custody.ts'
import { certificateOf } from '#plane/authority/ca-signer.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import { checkSchema, schemaVersion } from '#plane/store/sqlite/migrations.ts'
import { notAStore, storeCorrupt, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { headKeyName, keysInFolder } from '#plane/keys/key-files.ts'
import { readFirstStart } from './first-start.ts'
import { signerName } from './journal-key.ts'
import { lostKeys, refuseLostKeys, type InventoryFacts } from '#plane/keys/key-inventory.ts'
import type { StartOptions } from './foundation.ts'

/** `unfinished`: a first start was cut off before its domain was committed. */
export type FolderState = 'new' | 'unfinished' | 'domain'

export type StoredFacts = {
  /** Null: there is no domain in the database. */
  readonly domain: string | null
  readonly issuers: readonly IssuerRow[]
  /** Of the key that signed the newest entry; null: there is none, or it is not signed. */
  readonly headKeyId: string | null
}

const databaseOf = (dataFolder: string): string => path.join(dataFolder, 'muster.db')

/**
 * Signs of a plane that was here before. An empty folder, and one with a sealing key in it, is a new one; so is one with
 * nothing but a lock, which a first start leaves that was killed at once.
 */
const tracesIn = (dataFolder: string): readonly string[] => [
  ...namesIn(path.join(dataFolder, 'keys')).map((name) => `keys/${name}`),
  ...['admin.key', 'plane.domain', 'muster.db-wal', 'muster.db.importing'].filter((name) =>
    pathExists(path.join(dataFolder, name)),
  ),
]

/** Throws StoreRefused where a plane on SQLite must not start here. */
export const examineFolder = (dataFolder: string): { readonly state: FolderState; readonly stored: StoredFacts } => {
  const none: StoredFacts = { domain: null, issuers: [], headKeyId: null }
  const isUnfinished = readFirstStart(dataFolder) !== null
  if (sizeOf(databaseOf(dataFolder)) === 0) {
    if (isUnfinished) return { state: 'unfinished', stored: none }
    const what = pathExists(databaseOf(dataFolder)) ? 'muster.db is empty' : 'there is no muster.db'
    const traces = tracesIn(dataFolder)
    if (traces.length > 0) throw incomplete(dataFolder, what, traces)
    return { state: 'new', stored: none }
  }
  const stored = readStored(dataFolder)
  if (stored.domain === null) {
    if (isUnfinished) return { state: 'unfinished', stored }
    // A first start of release 0.2.0 that was cut off early leaves the key of the journal, and nothing depends on it.
    const traces = tracesIn(dataFolder).filter((name) => /^(keys\/(?!journal\.key)|admin|plane)/.test(name))
    if (traces.length > 0) throw incomplete(dataFolder, 'muster.db without a domain is', traces)
    return { state: 'unfinished', stored }
  }
  return { state: 'domain', stored }
}

const inPostgres = 'If the domain is in PostgreSQL, start the plane with --store postgres (MUSTER_STORE=postgres)'

const incomplete = (dataFolder: string, what: string, traces: readonly string[]): StoreRefused => {
  const named = traces.slice(0, 3).join(', ') + (traces.length > 3 ? ` and ${traces.length - 3} more` : '')
  // Where replicas share a database, the keys are in it.
  const hasKeys = traces.some((name) => name.startsWith('keys/'))
  return new StoreRefused(
    'DATA_FOLDER_INCOMPLETE',
    `${what} in the data folder ${dataFolder}, which holds parts of a domain: ${named}; nothing was changed`,
    `${hasKeys ? '' : `${inPostgres}. Else: `}Put muster.db back (is its disk mounted? is a restore unfinished?), or restore the whole folder from a backup. ${hasKeys ? `${inPostgres}. ` : ''}For a new domain choose an empty folder: --data FOLDER`,
  )
}

/**
 * Before the plane writes: each key opens, belongs to this database, and none that it needs is gone. Throws StoreRefused,
 * SealRefused or KeyDamaged.
 */
export const checkKeys = (
  dataFolder: string,
  stored: StoredFacts,
  sealing: SealingKey,
  facts: Pick<InventoryFacts, 'issuerKey' | 'nowMs'> &
    Pick<StartOptions, 'replacing' | 'examined'> & { readonly keyIdOf: (pem: string) => string },
): void => {
  const kept = keysInFolder(dataFolder)
  const opened = new Map([...kept].map(([name, sealed]) => [name, sealing.unseal(name, sealed)]))
  const head = opened.get(headKeyName)
  const { headKeyId } = stored
  const headId = head === undefined ? null : facts.keyIdOf(head)
  // A key that has replaced a lost one, and has signed nothing yet, is in keys/ beside the lost one.
  const areKept = [headId, headKeyId].every((id) => id !== null && kept.has(signerName(id)))
  if (headId !== null && headKeyId !== null && headId !== headKeyId && !areKept)
    throw mixed(
      `muster.db and keys/ in the data folder ${dataFolder} are not of the same domain: the journal is signed by another key than keys/journal.key`,
    )
  examineKeys(kept, stored, facts)
}

/** On what the database and the sealed keys say, before anything is written. Throws StoreRefused. */
export const examineKeys = (
  kept: ReadonlyMap<string, string>,
  { issuers, headKeyId }: StoredFacts,
  {
    issuerKey,
    nowMs,
    replacing,
    examined,
  }: Pick<InventoryFacts, 'issuerKey' | 'nowMs'> & Pick<StartOptions, 'replacing' | 'examined'>,
): void => {
  const names = [...kept.keys()].flatMap((name) => keyNameOfSealed(name) ?? [])
  const isVerified = headKeyId === null || kept.has(signerName(headKeyId))
  const headKey = kept.has(headKeyName) ? 'here' : isVerified ? 'lost' : 'unverifiable'
  const inventory = { issuers, names, headKey, issuerKey, nowMs } as const
  refuseLostKeys(inventory, replacing)
  examined(lostKeys(inventory), names)
}

const mixed = (why: string): StoreRefused =>
  new StoreRefused(
    'DATA_FOLDER_MIXED',
    `${why}; nothing was changed`,
    'Put back what belongs together: the data folder, the database and the sealing key of one domain, of one backup',
  )

const readStored = (dataFolder: string): StoredFacts => {
  const wal = `${databaseOf(dataFolder)}-wal`
  const index = `${databaseOf(dataFolder)}-shm`
  // Without a log to read, nothing has to be made beside the file to read it.
  const hasLog = sizeOf(wal) > 0
  const hadIndex = pathExists(index)
  let database: Database | null = null
  try {
    database = hasLog
      ? openDatabaseToRead(databaseOf(dataFolder), busyMs)
      : openFinishedDatabase(databaseOf(dataFolder))
    checkSchema(database)
    checkPages(database, sizeOf(databaseOf(dataFolder)))
    return schemaVersion(database) === 0 ? { domain: null, issuers: [], headKeyId: null } : factsIn(database)
  } catch (error) {
    if (error instanceof StoreRefused) throw error
    if (sqliteTrouble(error) === 'not-a-database') throw notAStore('it is not a SQLite database')
    if (isDamage(error)) throw storeCorrupt('muster.db', error)
    // SQLite only says that it cannot open the file or write beside it; the system says why.
    if (sqliteTrouble(error) === 'disk') requireAccess(databaseOf(dataFolder))
    throw error
  } finally {
    database?.close()
    if (hasLog && !hadIndex && pathExists(index)) removeFile(index)
  }
}

/**
 * A page or a row that is not what was written: only that is to be restored from a backup. A disk that is full or fails,
 * a file of another user or one that is in use says nothing about what is in it.
 */
const isDamage = (error: unknown): boolean => {
  const trouble = sqliteTrouble(error)
  return trouble === 'corrupt' || trouble === 'schema' || (trouble === null && errno(error) === null)
}

const busyMs = 500
/** Reads every page: a fraction of a second up to this size. A larger store is verified in the background instead. */
const largestChecked = 64 * 1024 * 1024

const checkPages = (database: Database, bytes: number): void => {
  if (bytes > largestChecked) return
  const [found] = database.prepare('PRAGMA quick_check(1)').all()
  const finding = String(found?.['quick_check'])
  if (finding === 'ok') return
  // A page that could not be read is a finding like any other; the code in it says that the disk failed.
  const [, errcode] = /error code[ =](\d+)/.exec(finding) ?? []
  throw errcode === undefined ? new Error(finding) : Object.assign(new Error(finding), { errcode: Number(errcode) })
}

const factsIn = (database: Database): StoredFacts => {
  const docs = (table: 'domain' | 'issuer' | 'profile' | 'operator_key'): unknown[] =>
    database
      .prepare(`SELECT doc FROM ${table}`)
      .all()
      .map((row) => JSON.parse(String(row['doc'])) as unknown)
  const [domain] = docs('domain') as { readonly name?: unknown }[]
  if (domain !== undefined && typeof domain.name !== 'string') throw new Error('the row of the domain is damaged')
  const issuers = docs('issuer') as IssuerRow[]
  issuers.forEach(checkIssuerRow)
  docs('profile')
  docs('operator_key')
  const newest = database.prepare('SELECT key_id FROM journal ORDER BY sequence DESC LIMIT 1').get()
  const headKeyId = newest === undefined ? null : (newest['key_id'] as string | null)
  return { domain: (domain?.name as string | undefined) ?? null, issuers, headKeyId }
}

/** A changed time would make an authority end, and its keys go, before its certificate does. */
const checkIssuerRow = (row: IssuerRow): void => {
  const { notBeforeMs, notAfterMs } = certificateOf(row)
  if (notBeforeMs !== row.notBeforeMs || notAfterMs !== row.notAfterMs)
    throw new Error(`the row of issuer ${row.id} does not fit its certificate`)
}

const belongsFile = (dataFolder: string): string => path.join(dataFolder, 'plane.domain')

/** Which domain a plane served from this folder before, by its root; null: none that left its name here. */
const domainOfFolder = (dataFolder: string): string | null => readFileIfAny(belongsFile(dataFolder))?.trim() ?? null

export const firstRootOf = (issuers: readonly IssuerRow[]): IssuerRow | undefined =>
  issuers.filter(({ role }) => role === 'root').sort((a, b) => a.notBeforeMs - b.notBeforeMs)[0]

export const keepDomainOfFolder = (dataFolder: string, issuers: readonly IssuerRow[]): void => {
  const oldest = firstRootOf(issuers)
  const file = belongsFile(dataFolder)
  if (oldest !== undefined && !pathExists(file)) createFile(file, `${oldest.id}\n`, 0o600)
}

/** With PostgreSQL the data folder holds little, but it may be the one of another domain than the database. */
export const refuseOtherDomain = (dataFolder: string, issuers: readonly Pick<IssuerRow, 'id' | 'role'>[]): void => {
  const before = domainOfFolder(dataFolder)
  if (before === null || before === '' || issuers.some(({ id }) => id === before)) return
  throw mixed(
    `the data folder ${dataFolder} is of the domain with the root ${before}, which is not on record in the database`,
  )
}

/** A database without a domain beside a folder that has one: the database is the wrong one, or was lost. */
export const refuseFolderOfDomain = (dataFolder: string): void => {
  if (readFirstStart(dataFolder) !== null) return
  const traces = tracesIn(dataFolder).filter((name) => /^(keys\/|admin\.key|plane\.domain)/.test(name))
  if (traces.length === 0) return
  throw new StoreRefused(
    'DATA_FOLDER_INCOMPLETE',
    `the database holds no domain, and ${traces[0]} of a domain is in the data folder ${dataFolder}; nothing was changed`,
    'Name the database of that domain, restore it, or bring the domain into this one (muster store copy --from FOLDER --to postgres). For a new domain choose an empty folder: --data FOLDER',
  )
}
