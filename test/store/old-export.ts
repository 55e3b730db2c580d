// An export file as 0.2.1 wrote it, of the store in a data folder that no plane runs on. This release reads such files.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { RowKind } from '#domain/core/change.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { canonicalJson } from '#plane/store/journal/canonical-json.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import { recordLine, type StoreRecord } from '#plane/store/copy/store-record.ts'
import { openStoppedStore } from '#plane/store/copy/source.ts'
import { countStored, storedRecords } from '#plane/store/copy/stored-records.ts'
import { kindsSince } from '#plane/store/postgres/schema-since.ts'
import type { PlaneConfig } from '#plane/config/config.ts'

/** Outputs are of 0.4, verifiers of 0.6, roots of issuers of 0.7. */
const asBefore = (stored: StoreRecord): StoreRecord => {
  if (stored.kind !== 'observation') return stored
  const { outputs: _later, task_verifiers: _verifiers, issuer_roots: _last, ...record } = stored.record
  return { kind: 'observation', record }
}

/** Makes the store one that 0.2.1 could have written: its schema of PostgreSQL was 3. */
const dropYoungRows = ({ dataFolder }: PlaneConfig): void => {
  const database = new DatabaseSync(path.join(dataFolder, 'muster.db'))
  for (const kind of Object.keys(kindsSince) as RowKind[])
    if (kindsSince[kind].schema > 3) database.exec(`DELETE FROM ${tableShapes[kind].table}`)
  database.close()
}

/** Its documents are those of schema 5 of SQLite. */
export const writeOldExport = async (config: PlaneConfig, file: string, signer: HeadSigner): Promise<void> => {
  dropYoungRows(config)
  const source = await openStoppedStore(config)
  try {
    const records: StoreRecord[] = []
    for await (const record of storedRecords(source)) records.push(asBefore(record))
    const counts = await countStored(source)
    const header = {
      domain: 'lab.example',
      store: 'sqlite',
      schema: 5,
      release: '0.2.1',
      made_at: '2030-01-01T00:00:00Z',
    }
    const lines = [
      JSON.stringify({ muster: 'store export', format: 2, ...header, counts }),
      ...records.map((record) => recordLine(record)),
    ]
    const body = lines.map((line) => `${line}\n`).join('')
    const sha256 = createHash('sha256').update(body).digest('hex')
    const signed = canonicalJson({ keyId: signer.keyId, purpose: 'muster store export', sha256 })
    const signature = Buffer.from(signer.sign(Buffer.from(signed, 'utf8'))).toString('base64url')
    const end = { end: { lines: lines.length, counts, sha256, key_id: signer.keyId, signature } }
    fs.writeFileSync(file, `${body}${JSON.stringify(end)}\n`, { mode: 0o600 })
  } finally {
    await source.close()
  }
}
