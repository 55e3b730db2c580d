// A store copied while its replicas run, into a folder that can be restored, and that a plane can be started on.
//
// SQLite: keys and database have to fit each other. A plane makes a key durable before it commits the row that names it, and drops
// one only after its row has ended, so a key without a row is harmless and a row without its key is not. Hence: the keys, then
// one moment of the database, then the keys that have come meanwhile. A key that a row of that moment names was there before or
// is there after. PostgreSQL has keys and rows in one moment.

import * as path from 'node:path'
import { flushFolder, makeFolder } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import { pathExists, removeFolder, renamePath } from '#platform/paths.ts'
import { copyDatabase, openFinishedDatabase } from '#platform/sqlite.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { keysInFolder, writeKeyFiles } from '#plane/keys/key-files.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import { CopyRefused, damagedStore } from './copy-refusal.ts'
import { startSteps, type CopyRun } from './copy-run.ts'
import { copyFrom, secretsIn, type CopiedStore } from './copy-store.ts'
import { refuseOtherHeads, startExamination } from './examine.ts'
import { makeManifest, writeManifest } from './manifest.ts'
import { databaseFile, movedKeysIn, openCurrentSqlite, readableSqlite } from './open-sqlite.ts'
import { givenSealingKey, openSealedKeys, ownSealingKeyFile } from './sealing-key.ts'
import { openPostgresMoment } from './source.ts'
import { totalOf } from './store-record.ts'
import { countStored, recordedHeads, storedRecords } from './stored-records.ts'

export type BackedUp = CopiedStore & {
  /** The sealing key is in the data folder, so it is in the copy: the holder of the copy has the plane. */
  readonly withSealingKey: boolean
  readonly sealingKeyFile: string
}

/** Throws CopyRefused or StoreRefused; then there is no such folder. */
export const backupStore = async (config: PlaneConfig, folder: string, run: CopyRun): Promise<BackedUp> => {
  const place = path.resolve(folder)
  if (pathExists(place)) throw exists(folder)
  if (!pathExists(path.dirname(place)))
    throw new CopyRefused('FILE_UNUSABLE', `there is no folder ${path.dirname(place)}`, 'Make it, or name another')
  const sealing = givenSealingKey(config)
  const onSqlite = config.store.kind === 'sqlite'
  const withSealingKey = onSqlite && path.resolve(sealing.file) === path.resolve(ownSealingKeyFile(config.dataFolder))
  const secrets = withSealingKey ? secretsIn(config.dataFolder) : new Map<string, string>()
  // Under its own name only once it is whole and verified.
  const beside = `${place}.${process.pid}.new`
  removeFolder(beside)
  makeFolder(beside, 0o700)
  try {
    const done = onSqlite
      ? await copyDataFolder(config.dataFolder, beside, { sealing: sealing.key, secrets }, run)
      : await copyPostgres(config, beside, sealing.key, run)
    flushFolder(beside)
    if (pathExists(place)) throw exists(folder)
    renamePath(beside, place)
    flushFolder(path.dirname(place))
    return { ...done, withSealingKey, sealingKeyFile: sealing.file }
  } catch (error) {
    removeFolder(beside)
    throw error
  }
}

const copyPostgres = async (
  config: PlaneConfig,
  to: string,
  sealing: SealingKey,
  run: CopyRun,
): Promise<CopiedStore> => {
  const source = await openPostgresMoment(config)
  try {
    const folder: PlaneConfig = { ...config, store: { kind: 'sqlite' }, dataFolder: to }
    const done = await copyFrom(source, folder, { sealing, secrets: new Map(), onlyDomain: null, expected: null }, run)
    removeFolder(path.join(to, 'plane.lock'))
    return done
  } finally {
    await source.close()
  }
}

type FolderParts = { readonly sealing: SealingKey; readonly secrets: ReadonlyMap<string, string> }

const copyDataFolder = async (
  from: string,
  to: string,
  { sealing, secrets }: FolderParts,
  run: CopyRun,
): Promise<CopiedStore> => {
  await copyPages(from, to, run)
  for (const [name, text] of secrets) createFile(path.join(to, name), text, 0o600)
  const done = await verify(to, sealing, run)
  writeManifest(to, done.manifest)
  return done
}

const copyPages = async (from: string, to: string, run: CopyRun): Promise<void> => {
  const database = openCurrentSqlite(from)
  try {
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

const verify = async (folder: string, sealing: SealingKey, run: CopyRun): Promise<CopiedStore> => {
  const signer = openSealedKeys(sealing, keysInFolder(folder))
  const database = openFinishedDatabase(databaseFile(folder))
  try {
    const [found] = database.prepare('PRAGMA integrity_check(1)').all()
    if (found?.['integrity_check'] !== 'ok') throw damagedStore(String(found?.['integrity_check']))
    const store = readableSqlite(database, movedKeysIn(folder))
    const step = startSteps(run, 'verifying', totalOf(await countStored(store)))
    const examiner = startExamination(signer)
    for await (const record of storedRecords(store)) {
      examiner.take(record)
      await step()
    }
    const content = examiner.end()
    refuseOtherHeads(content.heads, await recordedHeads(store))
    return { ...content, manifest: makeManifest(content, signer, run.clock.nowMs()) }
  } finally {
    database.close()
  }
}

const exists = (folder: string): CopyRefused =>
  new CopyRefused('FILE_EXISTS', `${folder} exists`, 'Name a folder that does not exist: nothing is overwritten')
