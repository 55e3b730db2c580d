// A data folder filled from an export. The database is made beside its place and gets its name last, after the keys:
// a key without a record harms nobody, a record without its key does.

import * as path from 'node:path'
import { flushFolder, makeFolder } from '#platform/files.ts'
import { pathExists, removeFolder, renamePath } from '#platform/paths.ts'
import { openDatabase, type Database, type SqlValue, type Statement } from '#platform/sqlite.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { migrate } from '#plane/store/sqlite/migrations.ts'
import type { RowKind } from '#domain/core/change.ts'
import { documentRow } from './document-row.ts'
import { journalRow } from './examine.ts'
import { keysInFolder, writeKeyFiles } from '#plane/keys/key-files.ts'
import { databaseFile, lockStopped, readableSqlite } from './sqlite-place.ts'
import { TransferRefused } from './transfer-errors.ts'
import type { TransferRecord } from './transfer-record.ts'
import type { TransferSink } from './transfer-sink.ts'

/** Throws TransferRefused where something lies there already; then nothing was touched. */
export const openSqliteSink = (folder: string, keys: ReadonlyMap<string, string>): TransferSink => {
  makeFolder(folder, 0o700)
  const lock = lockStopped(folder)
  const beside = path.join(folder, 'muster.db.importing')
  const removeBeside = (): void => ['', '-journal'].forEach((end) => removeFolder(beside + end))
  let database: Database
  try {
    refuseFull(folder, keys)
    removeBeside()
    database = openDatabase(beside, 0)
    database.exec('PRAGMA cache_size = -65536')
    migrate(database)
    database.exec('BEGIN IMMEDIATE')
  } catch (error) {
    lock.release()
    throw error
  }
  const insert = openInserts(database)
  let open = true
  return {
    ...readableSqlite(database, async () => keys),
    async add(records) {
      for (const record of records) insert(record)
    },
    async commit() {
      database.exec('COMMIT')
      database.close()
      writeKeyFiles(folder, keys)
      renamePath(beside, databaseFile(folder))
      flushFolder(folder)
      open = false
      lock.release()
    },
    async abandon() {
      if (!open) return
      open = false
      if (database.isOpen) database.close()
      removeBeside()
      lock.release()
    },
  }
}

/** The keys of this very export may be there: then an import was cut short before the database had its name. */
const refuseFull = (folder: string, keys: ReadonlyMap<string, string>): void => {
  const stranger = [...keysInFolder(folder)].find(([name, sealed]) => keys.get(name) !== sealed)
  if (!pathExists(databaseFile(folder)) && stranger === undefined) return
  const what = stranger === undefined ? 'a store' : 'keys of another store'
  throw new TransferRefused(
    'STORE_NOT_EMPTY',
    `the data folder ${folder} holds ${what} already`,
    'Import into a folder of its own: --data FOLDER',
  )
}

const openInserts = (database: Database): ((record: TransferRecord) => void) => {
  const rows = new Map<string, Statement>()
  const intoTable = (kind: RowKind): Statement => {
    const { table, columns } = tableShapes[kind]
    const names = ['key', 'version', 'doc', ...Object.keys(columns)]
    const known =
      rows.get(kind) ??
      database.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`)
    rows.set(kind, known)
    return known
  }
  const hardware = database.prepare('INSERT INTO hardware (value, node) VALUES (?, ?)')
  const observation = database.prepare(
    `INSERT INTO observation (node, last_seen_ms, agent_version, source, config_revision, report, rehearsed_at_ms,
       evidence, capabilities, overlay) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const webhook = database.prepare('INSERT INTO webhook_progress (id, doc) VALUES (1, ?)')
  const base = database.prepare('INSERT INTO journal_base VALUES (1, ?, ?, ?, ?, ?, ?)')
  const entry = database.prepare(
    'INSERT INTO journal (sequence, operation, bytes, hash, signature, key_id, node, type) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  )
  return ({ kind, record }) => {
    switch (kind) {
      case 'key':
        return
      case 'row': {
        const row = documentRow(record)
        intoTable(row.kind).run(row.key, record.version, row.doc, ...row.columns)
        return
      }
      case 'hardware':
        hardware.run(record.hardware, record.node)
        return
      case 'observation': {
        const { observation: node, report, evidence, capabilities, overlay, ...seen } = record
        const values: SqlValue[] = [seen.last_seen_ms, seen.agent_version, seen.source, seen.config_revision]
        const said = [evidence, capabilities, overlay].map(jsonOrNull)
        observation.run(node, ...values, jsonOrNull(report), seen.rehearsed_at_ms, ...said)
        return
      }
      case 'webhook':
        webhook.run(JSON.stringify(record.webhook))
        return
      case 'chain': {
        const { chain, domain, sequence, hash, signature, key_id: keyId } = record
        base.run(chain, domain, sequence, Buffer.from(hash, 'hex'), Buffer.from(signature, 'base64url'), keyId)
        return
      }
      case 'entry': {
        const { sequence, operation, bytes, hash, signature, keyId, node, type } = journalRow(record)
        entry.run(sequence, operation, bytes, hash, signature, keyId, node, type)
        return
      }
    }
  }
}

const jsonOrNull = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))
