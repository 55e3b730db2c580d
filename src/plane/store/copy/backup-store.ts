// A data folder copied while its plane runs, into a folder a plane can be started on.
//
// Keys and database have to fit each other. A plane makes a key durable before it commits the record that names it, and
// drops one only after its record is over, so a key without a record harms nobody and a record without its key does.
// Hence: the keys, then the moment of the database that is copied, then whatever keys have come meanwhile. What a record
// of that moment names was there before or is there after.

import * as path from 'node:path'
import { flushFolder, makeFolder, readFileIfAny } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import { pathExists, removeFolder, renamePath } from '#platform/paths.ts'
import { copyDatabase, openFinishedDatabase } from '#platform/sqlite.ts'
import { newestSchema } from '#plane/store/sqlite/migrations.ts'
import { startExamination, type ChainHead } from './examine.ts'
import { isMoved, keysInFolder, writeKeyFiles } from '#plane/keys/key-files.ts'
import { databaseFile, openSqliteToRead, readableSqlite, schemaOld } from './sqlite-place.ts'
import { countStored, storedRecords } from './stored-records.ts'
import { damagedStore, TransferRefused } from './transfer-errors.ts'
import { totalOf, type Counts } from './transfer-record.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { givenSealingKey, openSealedKeys, ownSealingKeyFile } from './transfer-keys.ts'
import { startSteps, type TransferRun } from './transfer-run.ts'

export type BackedUp = {
  readonly domain: string
  readonly counts: Counts
  readonly heads: readonly ChainHead[]
  /** The sealing key lies in the data folder, so it lies in the copy: whoever has that has the plane. */
  readonly withSealingKey: boolean
  readonly sealingKeyFile: string
}

/** Throws TransferRefused or StoreRefused; then there is no such folder. */
export const backupStore = async (config: PlaneConfig, folder: string, run: TransferRun): Promise<BackedUp> => {
  if (config.store.kind === 'postgres')
    throw new TransferRefused(
      'NOT_FOR_POSTGRES',
      'this copies the data folder of a plane on SQLite',
      'Back PostgreSQL up with its own tools, pg_basebackup or pgBackRest (docs/OPERATIONS.md); or, with all planes stopped: muster store export FILE --store postgres',
    )
  const place = path.resolve(folder)
  if (pathExists(place)) throw exists(folder)
  if (!pathExists(path.dirname(place)))
    throw new TransferRefused('FILE_UNUSABLE', `there is no folder ${path.dirname(place)}`, 'Make it, or name another')
  const sealing = givenSealingKey(config)
  // Under its own name only once it is whole and verified.
  const beside = `${place}.${process.pid}.new`
  removeFolder(beside)
  makeFolder(beside, 0o700)
  try {
    await copy(config.dataFolder, beside, run)
    const withSealingKey = path.resolve(sealing.file) === path.resolve(ownSealingKeyFile(config.dataFolder))
    if (withSealingKey) copySecrets(config.dataFolder, beside)
    const verified = await verify(beside, sealing.key, run)
    flushFolder(beside)
    if (pathExists(place)) throw exists(folder)
    renamePath(beside, place)
    flushFolder(path.dirname(place))
    return { ...verified, withSealingKey, sealingKeyFile: sealing.file }
  } catch (error) {
    removeFolder(beside)
    throw error
  }
}

const copy = async (from: string, to: string, run: TransferRun): Promise<void> => {
  const { database, schema } = openSqliteToRead(from)
  try {
    if (schema < newestSchema) throw schemaOld(schema, newestSchema)
    writeKeyFiles(to, keysInFolder(from))
    // A transaction sees one moment from its first look on.
    database.exec('BEGIN')
    database.prepare('SELECT count(*) FROM journal_base').get()
    writeKeyFiles(to, keysInFolder(from))
    await copyDatabase(database, databaseFile(to), ({ done, total }) =>
      run.onProgress({ doing: 'copying pages', done, total }),
    )
  } finally {
    database.close()
  }
}

/** Of no more worth to a thief than the sealing key beside them, and without them nobody gets into a restored plane. */
const copySecrets = (from: string, to: string): void => {
  for (const name of ['seal.key', 'admin.key']) {
    const text = readFileIfAny(path.join(from, name))
    if (text !== null) createFile(path.join(to, name), text, 0o600)
  }
}

const verify = async (
  folder: string,
  sealing: Parameters<typeof openSealedKeys>[0],
  run: TransferRun,
): Promise<Pick<BackedUp, 'domain' | 'counts' | 'heads'>> => {
  const all = keysInFolder(folder)
  const signer = openSealedKeys(sealing, all)
  const database = openFinishedDatabase(databaseFile(folder))
  try {
    const [found] = database.prepare('PRAGMA integrity_check(1)').all()
    if (found?.['integrity_check'] !== 'ok') throw damagedStore(String(found?.['integrity_check']))
    const keys = new Map([...all].filter(([name]) => isMoved(name)))
    const store = readableSqlite(database, async () => keys)
    const counts = await countStored(store)
    const step = startSteps(run, 'verifying', totalOf(counts))
    const examiner = startExamination(signer)
    for await (const record of storedRecords(store)) {
      examiner.take(record)
      await step()
    }
    return { counts, ...examiner.end() }
  } finally {
    database.close()
  }
}

const exists = (folder: string): TransferRefused =>
  new TransferRefused('FILE_EXISTS', `${folder} exists`, 'Name a folder that does not exist: nothing is overwritten')
