// A domain into an empty store: from another store that no plane runs on, from a backup, or from an export file of 0.2. What
// was written is read back and compared before it counts.

import * as path from 'node:path'
import { readFileIfAny, sizeOf } from '#platform/files.ts'
import { isOrdinaryFile, pathExists } from '#platform/paths.ts'
import { openFinishedDatabase } from '#platform/sqlite.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import { newestSchema, schemaVersion } from '#plane/store/sqlite/migrations.ts'
import { CopyRefused } from './copy-refusal.ts'
import { startSteps, type CopyRun } from './copy-run.ts'
import { openDestination, type Copied, type Destination } from './destination.ts'
import { refuseOtherHeads, startExamination, type Content } from './examine.ts'
import { makeManifest, manifestName, readManifest, refuseOtherContent, type Manifest } from './manifest.ts'
import { databaseFile, movedKeysIn, readableSqlite, schemaOld } from './open-sqlite.ts'
import { unpackExport } from './read-export.ts'
import { givenSealingKey, openSealedKeys, ownSealingKeyFile } from './sealing-key.ts'
import { openStoppedStore, type Source } from './source.ts'
import { totalOf, type StoreRecord } from './store-record.ts'
import { countStored, newestChain, recordedHeads, storedRecords } from './stored-records.ts'

export type CopiedStore = Content & { readonly manifest: Manifest }

const batchSize = 500

/** `onlyDomain`: refuse any other. Throws CopyRefused or StoreRefused; then the destination is as it was. */
export const copyStore = async (
  from: PlaneConfig,
  to: PlaneConfig,
  onlyDomain: string | null,
  run: CopyRun,
): Promise<CopiedStore & { readonly sealingKeyFile: string }> => {
  const sealing = givenSealingKey(from)
  const source = await openStoppedStore(from)
  try {
    const copied = { sealing: sealing.key, secrets: new Map<string, string>(), onlyDomain, expected: null }
    return { ...(await copyFrom(source, to, copied, run)), sealingKeyFile: sealing.file }
  } finally {
    await source.close()
  }
}

/** `backup`: a folder that `store backup` made, or an export file of 0.2. The sealing key may lie in the folder. */
export const restoreStore = async (
  backup: string,
  to: PlaneConfig,
  onlyDomain: string | null,
  run: CopyRun,
): Promise<CopiedStore & { readonly withSealingKey: boolean; readonly sealingKeyFile: string }> => {
  if (!pathExists(backup)) throw new CopyRefused('FILE_UNUSABLE', `there is no ${backup}`, 'Name a backup')
  if (isOrdinaryFile(backup)) {
    const sealing = givenSealingKey(to)
    const unpacked = await unpackExport(backup, sealing.key, { onlyDomain, run })
    try {
      const copied = { sealing: sealing.key, secrets: new Map<string, string>(), onlyDomain, expected: null }
      return { ...(await copyFrom(unpacked, to, copied, run)), withSealingKey: false, sealingKeyFile: sealing.file }
    } finally {
      await unpacked.close()
    }
  }
  const { source, manifest } = openBackup(backup)
  try {
    const own = ownSealingKeyFile(backup)
    const keyIsInIt = to.sealKeyFile === null && to.credentialsFolder === null && pathExists(own)
    const sealing = givenSealingKey(keyIsInIt ? { ...to, sealKeyFile: own } : to)
    const secrets = keyIsInIt && to.store.kind === 'sqlite' ? secretsIn(backup) : new Map<string, string>()
    const copied = { sealing: sealing.key, secrets, onlyDomain, expected: manifest }
    const done = await copyFrom(source, to, copied, run)
    return { ...done, withSealingKey: secrets.size > 0, sealingKeyFile: sealing.file }
  } finally {
    await source.close()
  }
}

/** The sealing key and the admin key: files of a plane's data folder that are in its backup. */
export const secretsIn = (folder: string): ReadonlyMap<string, string> =>
  new Map(
    ['seal.key', 'admin.key'].flatMap((name) => {
      const text = readFileIfAny(path.join(folder, name))
      return text === null ? [] : [[name, text] as const]
    }),
  )

const openBackup = (folder: string): { readonly source: Source; readonly manifest: Manifest } => {
  const manifest = readManifest(folder)
  const file = databaseFile(folder)
  if (manifest === null || !pathExists(file) || sizeOf(`${file}-wal`) > 0)
    throw new CopyRefused(
      'BACKUP_UNKNOWN',
      `${folder} is not a backup: ${manifest === null ? `it has no ${manifestName}` : pathExists(file) ? 'a plane has run on it' : 'it has no muster.db'}`,
      `Name a folder that this made: muster store backup FOLDER. A data folder is copied by: muster store copy --from ${folder} --to FOLDER`,
    )
  const database = openFinishedDatabase(file)
  const schema = schemaVersion(database)
  if (schema !== newestSchema) {
    database.close()
    throw schemaOld(schema, newestSchema)
  }
  const source = { ...readableSqlite(database, movedKeysIn(folder)), close: async () => database.close() }
  return { source, manifest }
}

type CopyOptions = {
  readonly sealing: SealingKey
  readonly secrets: Copied['secrets']
  readonly onlyDomain: string | null
  /** What the content has to be; null: there is no signed manifest. */
  readonly expected: Manifest | null
}

export const copyFrom = async (
  source: Source,
  to: PlaneConfig,
  options: CopyOptions,
  run: CopyRun,
): Promise<CopiedStore> => {
  const keys = await source.keys()
  const signer = openSealedKeys(options.sealing, keys)
  await refuseOtherDomain(source, options.onlyDomain)
  const total = totalOf(await countStored(source))
  const copied = { keys, continued: await newestChain(source), secrets: options.secrets }
  const destination = await openDestination(to, copied)
  try {
    const content = await fill(source, destination, signer, startSteps(run, 'copying', total))
    if (options.expected !== null) refuseOtherContent(options.expected, content, signer)
    await compareWithStored(destination, content, signer, startSteps(run, 'reading it back', total))
    const manifest = makeManifest(content, signer, run.clock.nowMs())
    await destination.commit(manifest)
    return { ...content, manifest }
  } catch (error) {
    await destination.abandon()
    throw error
  }
}

const refuseOtherDomain = async (source: Source, onlyDomain: string | null): Promise<void> => {
  const [row] = await source.sql.read({ name: 'copy-domain', text: 'SELECT doc FROM domain' })
  if (row === undefined)
    throw new CopyRefused('NO_STORE', 'the store holds no domain yet', 'Start a plane on it first: muster plane')
  const { name } = JSON.parse(String(row['doc'])) as { readonly name: string }
  if (onlyDomain !== null && name !== onlyDomain)
    throw new CopyRefused(
      'OTHER_DOMAIN',
      `it is of the domain ${name}, not of ${onlyDomain}`,
      'Name the store of that domain, or leave out --domain',
    )
}

const fill = async (
  source: Source,
  destination: Destination,
  signer: HeadSigner,
  step: () => Promise<void>,
): Promise<Content> => {
  const examiner = startExamination(signer)
  let batch: StoreRecord[] = []
  for await (const record of storedRecords(source)) {
    examiner.take(record)
    batch.push(record)
    if (batch.length >= batchSize) {
      await destination.add(batch)
      batch = []
    }
    await step()
  }
  await destination.add(batch)
  await destination.endChains()
  const content = examiner.end()
  refuseOtherHeads(content.heads, await recordedHeads(source))
  return content
}

/** The database has to give back what was written, byte by byte, with a journal that verifies. */
const compareWithStored = async (
  destination: Destination,
  { sha256 }: Content,
  signer: HeadSigner,
  step: () => Promise<void>,
): Promise<void> => {
  const examiner = startExamination(signer)
  for await (const record of storedRecords(destination)) {
    examiner.take(record)
    await step()
  }
  if (examiner.end().sha256 !== sha256) throw new Error('what was written is not what is read back; nothing was kept')
}
