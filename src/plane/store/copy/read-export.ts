// The export files of 0.2: a header, one record a line, and an end that says how much there was and is signed with the key of
// journal heads, so that what was cut off or altered on the way is found out. They are read and no longer written.

import { createHash } from 'node:crypto'
import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/schema'
import { linesOf } from '#platform/line-file.ts'
import { makeTemporaryFolder, removeFolder } from '#platform/paths.ts'
import { openDatabase } from '#platform/sqlite.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import { canonicalJson } from '#plane/store/journal/canonical-json.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import { migrate } from '#plane/store/sqlite/migrations.ts'
import { openSqliteSql } from '#plane/store/sqlite/sqlite-sql.ts'
import { CopyRefused, damagedBackup as damaged } from './copy-refusal.ts'
import { startSteps, type CopyRun } from './copy-run.ts'
import { startExamination, type Examiner } from './examine.ts'
import { openSealedKeys } from './sealing-key.ts'
import type { Source } from './source.ts'
import { countLabels, countsDiffer, readRecord, startCount, totalOf } from './store-record.ts'
import type { Counts, StoreRecord } from './store-record.ts'
import { oneJournal, openRecordWriter } from './write-records.ts'

const format = 2
const whatItIs = 'store export'
/** The longest line there can be is a node's report, which the listener bounds far below this. */
const longestLine = 8 << 20

const strict = { additionalProperties: false }
/** A release counts the kinds of rows that it knows. */
const CountsSchema = Type.Object(
  Object.fromEntries(countLabels.map((label) => [label, Type.Optional(Type.Integer({ minimum: 0 }))])),
  strict,
)
const Header = Type.Object(
  {
    muster: Type.Literal(whatItIs),
    format: Type.Literal(format),
    domain: Type.String({ minLength: 1, maxLength: 253 }),
    store: Type.Enum(['sqlite', 'postgres']),
    schema: Type.Integer({ minimum: 1 }),
    release: Type.String(),
    made_at: Type.String(),
    counts: CountsSchema,
  },
  strict,
)
const End = Type.Object(
  {
    end: Type.Object(
      {
        lines: Type.Integer({ minimum: 1 }),
        counts: CountsSchema,
        sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
        key_id: Type.String(),
        signature: Type.String({ pattern: '^[A-Za-z0-9_-]{1,1000}$' }),
      },
      strict,
    ),
  },
  strict,
)
type RawHeader = Static<typeof Header>
type ExportHeader = Omit<RawHeader, 'muster' | 'format' | 'counts'> & { readonly counts: Counts }
type ExportEnd = { readonly sha256: string; readonly keyId: string; readonly signature: Uint8Array }

const headerCheck = Compile(Header)
const endCheck = Compile(End)

const signedEnd = (sha256: string, keyId: string): Uint8Array =>
  Buffer.from(canonicalJson({ keyId, purpose: 'muster store export', sha256 }), 'utf8')

const endIsSigned = (end: ExportEnd, signer: HeadSigner): boolean =>
  end.keyId === signer.keyId && signer.verify(signedEnd(end.sha256, end.keyId), end.signature)

type ExportPart =
  | { readonly kind: 'header'; readonly header: ExportHeader }
  | StoreRecord
  /** The last: until it has come, nothing before it is known to be whole. */
  | { readonly kind: 'end'; readonly end: ExportEnd }

/** Throws CopyRefused where it is not what 0.2 wrote. Whether the end is signed is the caller's to ask. */
function* readExport(file: string): Generator<ExportPart, void, void> {
  const hash = createHash('sha256')
  const count = startCount()
  let header: ExportHeader | null = null
  let lines = 0
  let ended = false
  for (const line of linesOf(file, longestLine)) {
    if (ended) throw damaged('something follows its end')
    const value = line.ended ? parsed(line.bytes) : null
    if (header === null) {
      header = readHeader(value)
      yield { kind: 'header', header }
    } else if (value === null) {
      throw damaged(line.ended ? `line ${lines + 1} is not readable` : `it was cut off in line ${lines + 1}`)
    } else if (Object.hasOwn(value, 'end')) {
      if (!endCheck.Check(value)) throw damaged('its end is not readable')
      const { end } = value
      const counts = count.counts()
      const differs = countsDiffer(allCounts(end.counts), counts) ?? countsDiffer(header.counts, counts)
      if (differs !== null) throw damaged(`it has ${differs}`)
      if (end.lines !== lines || end.sha256 !== hash.digest('hex')) throw damaged('it does not match its own hash')
      const signature = Buffer.from(end.signature, 'base64url')
      // The last character has bits that no byte comes of: altered, it would still be the same signature.
      if (signature.toString('base64url') !== end.signature) throw damaged('its end is not readable')
      ended = true
      yield { kind: 'end', end: { sha256: end.sha256, keyId: end.key_id, signature } }
      continue
    } else {
      const record = readRecord(value)
      if (record === null) throw damaged(`line ${lines + 1} is no record of this format`)
      count.add(record)
      yield record
    }
    hash.update(line.bytes).update('\n')
    lines++
  }
  if (header === null) throw unknown('it is empty')
  if (!ended) throw damaged('its end is missing')
}

const readHeader = (value: object | null): ExportHeader => {
  if (value === null || !('muster' in value) || value.muster !== whatItIs) throw unknown('it does not begin like one')
  if ('format' in value && value.format !== format)
    throw unknown(`it has format ${String(value.format)}, and this release of Muster reads format ${format}`)
  if (!headerCheck.Check(value)) throw damaged('its first line is not readable')
  const { muster: _what, format: _format, ...header } = value
  return { ...header, counts: allCounts(header.counts) }
}

const allCounts = (counts: Static<typeof CountsSchema>): Counts =>
  Object.fromEntries(countLabels.map((label) => [label, (counts as Partial<Counts>)[label] ?? 0])) as Counts

const parsed = (bytes: Uint8Array): object | null => {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}

const unknown = (why: string): CopyRefused =>
  new CopyRefused(
    'BACKUP_UNKNOWN',
    `the file is not an export of a store: ${why}`,
    'Name a folder that this made: muster store backup FOLDER; or a file that muster store export of 0.2 made',
  )

export type UnpackOptions = { readonly onlyDomain: string | null; readonly run: CopyRun }

const batchSize = 500
/** A domain has a handful; a file that claims more is none of ours. */
const mostKeys = 10_000

/** The schema of SQLite that has the documents of an export. Both stores have got the same steps since 0.1. */
const sqliteSchemas = { sqlite: [4, 5], postgres: [2, 3] } as const
const aheadOfPostgres = 2

/**
 * Reads the file to its end into a SQLite store of its own, with the schema of the release that wrote it, and brings that up
 * to date. Throws CopyRefused; then nothing is left. It is read twice: only its end says whether it is whole, and a table may
 * refuse what was altered before that, in words about a store that was not named.
 */
export const unpackExport = async (file: string, sealing: SealingKey, options: UnpackOptions): Promise<Source> => {
  await readInto(file, sealing, options, 'checking the file', {
    begin: () => {},
    beginJournal: () => {},
    add: async () => {},
  })
  const folder = makeTemporaryFolder('muster-restore-')
  const database = openDatabase(path.join(folder, 'muster.db'), 0)
  const close = async (): Promise<void> => {
    database.close()
    removeFolder(folder)
  }
  try {
    // A temporary store: it is removed in any case.
    database.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF')
    const sql = openSqliteSql(database, () => {})
    // Which of the chains goes on is for the destination to say.
    const writer = openRecordWriter(sql, oneJournal(null))
    const keys = await readInto(file, sealing, options, 'reading the file', {
      begin: (schema) => migrate(database, schema),
      // Documents are brought up to date before the journal comes, which has a place for several chains only then.
      beginJournal: () => migrate(database),
      add: (records) => writer.add(records),
    })
    await writer.endChains()
    return { sql, keys: async () => keys, close }
  } catch (error) {
    await close()
    throw error
  }
}

type Unpacked = {
  begin(schema: number): void
  beginJournal(): void
  add(records: readonly StoreRecord[]): Promise<void>
}

const readInto = async (
  file: string,
  sealing: SealingKey,
  { onlyDomain, run }: UnpackOptions,
  label: string,
  into: Unpacked,
): Promise<ReadonlyMap<string, string>> => {
  const keys = new Map<string, string>()
  let step = async (): Promise<void> => {}
  let header: ExportHeader | null = null
  let opened: { readonly signer: HeadSigner; readonly examiner: Examiner } | null = null
  let batch: StoreRecord[] = []
  let inJournal = false
  let whole = false
  const flush = async (): Promise<void> => {
    await into.add(batch)
    batch = []
  }
  for (const part of readExport(file)) {
    switch (part.kind) {
      case 'header':
        header = part.header
        into.begin(schemaFor(header, onlyDomain))
        step = startSteps(run, label, totalOf(header.counts))
        break
      case 'key':
        if (keys.size >= mostKeys || opened !== null) throw damaged('its keys are not where they belong')
        keys.set(part.record.key, part.record.sealed)
        await step()
        break
      case 'end': {
        if (header === null || opened === null) throw damaged('there is nothing in it')
        if (!endIsSigned(part.end, opened.signer)) throw damaged('its end is not signed by the key of this domain')
        if (opened.examiner.end().domain !== header.domain) throw damaged('its domain is not the one it says')
        whole = true
        break
      }
      default:
        opened ??= openWith(openSealedKeys(sealing, keys))
        opened.examiner.take(part)
        if (part.kind === 'chain' && !inJournal) {
          await flush()
          into.beginJournal()
          inJournal = true
        }
        batch.push(part)
        if (batch.length >= batchSize) await flush()
        await step()
    }
  }
  await flush()
  if (!whole || !inJournal) throw damaged('its end is missing')
  return keys
}

const openWith = (signer: HeadSigner) => ({ signer, examiner: startExamination(signer) })

const schemaFor = ({ domain, store, schema, release }: ExportHeader, onlyDomain: string | null): number => {
  if (onlyDomain !== null && domain !== onlyDomain)
    throw new CopyRefused(
      'OTHER_DOMAIN',
      `the export is of the domain ${domain}, not of ${onlyDomain}`,
      'Name the export of that domain, or leave out --domain',
    )
  const readable: readonly number[] = sqliteSchemas[store]
  if (!readable.includes(schema))
    throw new CopyRefused(
      'BACKUP_UNKNOWN',
      `the export was made by release ${release} of a store with schema ${schema}; this release reads schemas ${readable.join(' and ')}`,
      'Import it with the release that made it, and upgrade afterwards: muster store migrate',
    )
  return store === 'sqlite' ? schema : schema + aheadOfPostgres
}
