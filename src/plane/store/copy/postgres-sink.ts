// An empty database filled from an export, in one transaction.

import type { RowKind } from '#domain/core/change.ts'
import type { PgSession, PgValue } from '#platform/postgres.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { documentRow } from './document-row.ts'
import { journalRow } from './examine.ts'
import { asking, readablePostgres, refuseLeased } from './postgres-place.ts'
import { movedTables } from './stored-records.ts'
import { TransferRefused } from './transfer-errors.ts'
import { labelOf, type RecordOf, type TransferRecord } from './transfer-record.ts'
import type { TransferSink } from './transfer-sink.ts'

/** Nothing is in any of them, and as long as they are locked no plane begins. */
const guarded = ['domain', 'replica', 'chain', 'sealed_key']

/** The schema is that of this release. Takes the session over. Throws TransferRefused; then nothing was touched. */
export const openPostgresSink = async (
  session: PgSession,
  keys: ReadonlyMap<string, string>,
): Promise<TransferSink> => {
  const insert = openInsert(session)
  try {
    await refuseLeased(session)
    await session.exec(`BEGIN; LOCK TABLE ${guarded.join(', ')} IN EXCLUSIVE MODE`)
    await refuseLeased(session)
    await refuseFull(session)
    await insert('sealed_key', { name: texts([...keys.keys()]), sealed: texts([...keys.values()]) })
  } catch (error) {
    await session.end()
    throw error
  }
  let chain = ''
  const heads = new Map<string, { readonly sequence: number; readonly hash: Uint8Array }>()

  const addRun = async (run: readonly TransferRecord[]): Promise<void> => {
    const [first] = run
    if (first === undefined) return
    switch (first.kind) {
      case 'key':
        return
      case 'row':
        return insertDocuments(insert, of<'row'>(run))
      case 'hardware': {
        const held = of<'hardware'>(run)
        const [value, node] = [held.map((one) => one.hardware), held.map((one) => one.node)]
        return insert('hardware', { value: texts(value), node: texts(node) })
      }
      case 'observation':
        return insertObservations(insert, of<'observation'>(run))
      case 'webhook':
        return insert('webhook_progress', { id: numbers([1]), doc: texts([JSON.stringify(first.record.webhook)]) })
      case 'chain':
        for (const base of of<'chain'>(run)) {
          chain = base.chain
          const [hash, signature] = [Buffer.from(base.hash, 'hex'), Buffer.from(base.signature, 'base64url')]
          heads.set(chain, { sequence: base.sequence, hash })
          await insert('chain', {
            chain: texts([chain]),
            domain: texts([base.domain]),
            base_sequence: numbers([base.sequence]),
            base_hash: blobs([hash]),
            base_signature: blobs([signature]),
            base_key_id: texts([base.key_id]),
            sequence: numbers([base.sequence]),
            hash: blobs([hash]),
          })
        }
        return
      case 'entry': {
        const rows = of<'entry'>(run).map(journalRow)
        const { sequence, hash } = rows.at(-1) ?? { sequence: 0, hash: new Uint8Array() }
        heads.set(chain, { sequence, hash })
        return insert('journal', {
          chain: texts(rows.map(() => chain)),
          sequence: numbers(rows.map((row) => row.sequence)),
          operation: texts(rows.map((row) => row.operation)),
          bytes: texts(rows.map((row) => row.bytes)),
          hash: blobs(rows.map((row) => row.hash)),
          signature: blobs(rows.map((row) => row.signature)),
          key_id: texts(rows.map((row) => row.keyId)),
          node: texts(rows.map((row) => row.node)),
          type: texts(rows.map((row) => row.type)),
        })
      }
    }
  }

  return {
    ...readablePostgres(session),
    async add(records) {
      for (const run of runsOf(records)) await addRun(run)
    },
    async commit() {
      const ask = asking(session)
      for (const [name, { sequence, hash }] of heads)
        await ask('UPDATE chain SET sequence = ?, hash = ? WHERE chain = ?', [sequence, hash, name])
      // Nobody has looked at these tables yet, and the first plane must not have to guess how large they are.
      await session.exec(`ANALYZE ${['chain', ...movedTables.map(([, table]) => table)].join(', ')}`)
      await commitForCertain(session)
      await session.end()
    },
    async abandon() {
      if (!session.ended) await session.end()
    },
  }
}

/** A warning is all that PostgreSQL says when a commit was not carried to its standby. */
const commitForCertain = async (session: PgSession): Promise<void> => {
  const warnings: string[] = []
  session.onWarning((message) => warnings.push(message))
  const unsure = 'it is not known whether everything was written; see: muster store status --store postgres'
  try {
    await session.exec('COMMIT')
  } catch (error) {
    throw new StoreFault(unsure, error)
  }
  if (warnings.length > 0) throw new StoreFault(unsure, warnings.join(' '))
}

const refuseFull = async (session: PgSession): Promise<void> => {
  const ask = asking(session)
  const tables = ['chain', 'sealed_key', ...movedTables.map(([, table]) => table)]
  const [found] = await ask(
    `SELECT ${tables.map((table) => `EXISTS (SELECT FROM ${table}) AS ${table}`).join(', ')}`,
    [],
  )
  const full = tables.filter((table) => found?.[table] !== false)
  if (full.length === 0) return
  throw new TransferRefused(
    'STORE_NOT_EMPTY',
    `the database holds a store already: there is something in ${full.join(', ')}`,
    'Import into an empty database',
  )
}

type Column = { readonly type: 'text' | 'bigint' | 'bytea'; readonly values: readonly PgValue[] }
const texts = (values: readonly (string | null)[]): Column => ({ type: 'text', values })
const numbers = (values: readonly (number | null)[]): Column => ({ type: 'bigint', values })
const blobs = (values: readonly (Uint8Array | null)[]): Column => ({ type: 'bytea', values })

type Insert = (table: string, columns: Readonly<Record<string, Column>>) => Promise<void>

/** In the order given: tokens are listed in the order in which they came. */
const openInsert = (session: PgSession): Insert => {
  const ask = asking(session)
  return async (table, columns) => {
    const names = Object.keys(columns)
    const arrays = Object.values(columns)
    const statement = `INSERT INTO ${table} (${names.join(', ')}) SELECT ${names.join(', ')}
      FROM unnest(${arrays.map(({ type }) => `?::${type}[]`).join(', ')}) WITH ORDINALITY
        AS given (${names.join(', ')}, place) ORDER BY place`
    await ask(
      statement,
      arrays.map(({ values }) => values),
    )
  }
}

const insertDocuments = async (insert: Insert, records: readonly RecordOf<'row'>[]): Promise<void> => {
  const rows = records.map(documentRow)
  const kind = records[0]?.row as RowKind
  const columns = Object.keys(tableShapes[kind].columns).map((name, at) => {
    const values = rows.map((row) => row.columns[at] as string | number | null)
    return [
      name,
      // A time that no row has is a number too.
      name.endsWith('_ms') || values.some((value) => typeof value === 'number')
        ? numbers(values as number[])
        : texts(values as string[]),
    ]
  })
  await insert(tableShapes[kind].table, {
    key: texts(rows.map((row) => row.key)),
    version: numbers(records.map((record) => record.version)),
    doc: texts(rows.map((row) => row.doc)),
    ...(Object.fromEntries(columns) as Record<string, Column>),
  })
}

const insertObservations = (insert: Insert, seen: readonly RecordOf<'observation'>[]): Promise<void> => {
  const json = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))
  return insert('observation', {
    node: texts(seen.map((one) => one.observation)),
    last_seen_ms: numbers(seen.map((one) => one.last_seen_ms)),
    agent_version: texts(seen.map((one) => one.agent_version)),
    source: texts(seen.map((one) => one.source)),
    config_revision: numbers(seen.map((one) => one.config_revision)),
    report: texts(seen.map((one) => json(one.report))),
    rehearsed_at_ms: numbers(seen.map((one) => one.rehearsed_at_ms)),
    evidence: texts(seen.map((one) => json(one.evidence))),
    capabilities: texts(seen.map((one) => json(one.capabilities))),
    overlay: texts(seen.map((one) => json(one.overlay))),
  })
}

/** Records that follow each other and go into one table. */
const runsOf = (records: readonly TransferRecord[]): TransferRecord[][] => {
  const runs: TransferRecord[][] = []
  for (const record of records) {
    const last = runs.at(-1)
    if (last?.[0] !== undefined && labelOf(last[0]) === labelOf(record)) last.push(record)
    else runs.push([record])
  }
  return runs
}

const of = <K extends TransferRecord['kind']>(run: readonly TransferRecord[]): readonly RecordOf<K>[] =>
  run.map(({ record }) => record as RecordOf<K>)
