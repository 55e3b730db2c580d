// Records into the tables of an empty store, many of a kind at a time.

import type { RowKind, RowTypes } from '#domain/core/change.ts'
import { columnTypeOf, tableShapes } from '#plane/store/commit/columns.ts'
import { encodeRow, type EncodedRow } from '#plane/store/commit/row-tables.ts'
import type { ChainPlace } from '#plane/store/journal/journal-chain.ts'
import type { Insertion, Sql, SqlColumn, SqlValue } from '#plane/store/sql/sql.ts'
import { damagedBackup } from './copy-refusal.ts'
import { baseRow, journalRow } from './examine.ts'
import { labelOf, type RecordOf, type StoreRecord } from './store-record.ts'

export type RecordWriter = {
  add(records: readonly StoreRecord[]): Promise<void>
  /** Where a store keeps its sealed keys in a table. */
  addKeys(keys: ReadonlyMap<string, string>): Promise<void>
  endChains(): Promise<void>
}

/** Which tables a chain is in. */
export type JournalLayout = (chain: string) => {
  readonly entries: { readonly table: string; readonly hasChain: boolean }
  readonly chain: 'chain' | 'closed_chain' | 'journal_base'
}

/** PostgreSQL: all chains are alike, and a replica that starts takes one over. */
export const sharedJournal: JournalLayout = () => ({
  entries: { table: 'journal', hasChain: true },
  chain: 'chain',
})

/** SQLite: one chain is continued, and the others are closed. */
export const oneJournal =
  (continued: string | null): JournalLayout =>
  (chain) =>
    chain === continued
      ? { entries: { table: 'journal', hasChain: false }, chain: 'journal_base' }
      : { entries: { table: 'closed_entry', hasChain: true }, chain: 'closed_chain' }

type WrittenChain = { readonly base: ReturnType<typeof baseRow>; end: Omit<ChainPlace, 'chain'> }

export const openRecordWriter = (sql: Pick<Sql, 'insert'>, layout: JournalLayout): RecordWriter => {
  const chains: WrittenChain[] = []

  const insertionOf = (run: readonly StoreRecord[]): Insertion | null => {
    const [first] = run
    switch (first?.kind) {
      case undefined:
      case 'key':
        return null
      case 'row':
        return documents(first.record.row, of<'row'>(run))
      case 'hardware':
        return into('hardware', [text('value'), text('node')], of<'hardware'>(run).map(heldHardware))
      case 'observation':
        return observations(of<'observation'>(run))
      case 'webhook':
        return into('webhook_progress', [bigint('id'), text('doc')], [[1, JSON.stringify(first.record.webhook)]])
      case 'chain':
        for (const record of of<'chain'>(run)) {
          const base = baseRow(record)
          chains.push({ base, end: base })
        }
        return null
      case 'entry':
        return entriesOf(of<'entry'>(run))
    }
  }
  const entriesOf = (records: readonly RecordOf<'entry'>[]): Insertion => {
    const open = chains.at(-1)
    const rows = records.map(journalRow)
    const last = rows.at(-1)
    if (open === undefined || last === undefined) throw damagedBackup('an entry belongs to no chain')
    open.end = last
    const { table, hasChain } = layout(open.base.chain).entries
    return into(
      table,
      [...(hasChain ? [text('chain')] : []), ...entryColumns],
      rows.map((row) => [
        ...(hasChain ? [open.base.chain] : []),
        ...[row.sequence, row.operation, row.bytes, row.hash, row.signature, row.keyId, row.node, row.type],
      ]),
    )
  }

  return {
    async add(records) {
      for (const run of runsOf(records)) {
        const insertion = insertionOf(run)
        if (insertion !== null) await sql.insert([insertion])
      }
    },
    addKeys: (keys) => sql.insert([into('sealed_key', [text('name'), text('sealed')], [...keys])]),
    endChains: () => sql.insert(chains.map(({ base, end }) => chainRow(layout(base.chain).chain, base, end))),
  }
}

const text = (name: string): SqlColumn => ({ name, type: 'text' })
const bigint = (name: string): SqlColumn => ({ name, type: 'bigint' })
const bytea = (name: string): SqlColumn => ({ name, type: 'bytea' })

const into = (table: string, columns: readonly SqlColumn[], rows: readonly (readonly SqlValue[])[]): Insertion => ({
  name: `copy-into-${table}`,
  into: table,
  columns,
  onConflict: '',
  rows,
})

/** Its columns are made of its document, as in any commit. */
const documents = (kind: RowKind, records: readonly RecordOf<'row'>[]): Insertion => {
  const { table, columns } = tableShapes[kind]
  const derived = Object.keys(columns).map((name): SqlColumn => ({ name, type: columnTypeOf(name) }))
  return into(
    table,
    [text('key'), bigint('version'), text('doc'), ...derived],
    records.map((record) => {
      const row = documentRow(record)
      return [row.key, record.version, row.doc, ...(row.columns as readonly SqlValue[])]
    }),
  )
}

const documentRow = ({ row, value }: RecordOf<'row'>): EncodedRow => {
  try {
    const encoded = encodeRow(row, value as RowTypes[RowKind])
    if (typeof encoded.key === 'string' && !encoded.columns.includes(undefined as never)) return encoded
  } catch {
    // Something its key or a column is made of is missing.
  }
  throw damagedBackup(`a ${row} in it is not one`)
}

const heldHardware = ({ hardware, node }: RecordOf<'hardware'>): readonly SqlValue[] => [hardware, node]

const observationColumns: readonly SqlColumn[] = [
  text('node'),
  bigint('last_seen_ms'),
  text('agent_version'),
  text('source'),
  bigint('config_revision'),
  text('report'),
  bigint('rehearsed_at_ms'),
  text('evidence'),
  text('capabilities'),
  text('overlay'),
]

/** What an earlier release has written goes into a store of its own schema first, which has no place for what is younger. */
const observations = (records: readonly RecordOf<'observation'>[]): Insertion => {
  const outputs = records.every((seen) => seen.outputs !== undefined)
  const verifiers = records.every((seen) => seen.task_verifiers !== undefined)
  const roots = records.every((seen) => seen.issuer_roots !== undefined)
  return into(
    'observation',
    [
      ...observationColumns,
      ...(outputs ? [text('outputs')] : []),
      ...(verifiers ? [bigint('task_verifiers')] : []),
      ...(roots ? [bigint('issuer_roots')] : []),
    ],
    records.map((seen) => [
      ...observationRow(seen),
      ...(outputs ? [json(seen.outputs ?? null)] : []),
      ...(verifiers ? [seen.task_verifiers ?? null] : []),
      ...(roots ? [seen.issuer_roots ?? null] : []),
    ]),
  )
}

const json = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

const observationRow = (seen: RecordOf<'observation'>): readonly SqlValue[] => [
  ...[seen.observation, seen.last_seen_ms, seen.agent_version, seen.source, seen.config_revision, json(seen.report)],
  ...[seen.rehearsed_at_ms, json(seen.evidence), json(seen.capabilities), json(seen.overlay)],
]

const entryColumns: readonly SqlColumn[] = [
  bigint('sequence'),
  text('operation'),
  text('bytes'),
  bytea('hash'),
  bytea('signature'),
  text('key_id'),
  text('node'),
  text('type'),
]

const chainRow = (
  table: ReturnType<JournalLayout>['chain'],
  base: WrittenChain['base'],
  { sequence, hash }: WrittenChain['end'],
): Insertion => {
  const begins = [base.sequence, base.hash, base.signature, base.keyId]
  if (table === 'journal_base') {
    const columns = [bigint('sequence'), bytea('hash'), bytea('signature'), text('key_id')]
    return into(
      table,
      [bigint('id'), text('chain'), text('domain'), ...columns],
      [[1, base.chain, base.domain, ...begins]],
    )
  }
  const columns = [bigint('base_sequence'), bytea('base_hash'), bytea('base_signature'), text('base_key_id')]
  return into(
    table,
    [text('chain'), text('domain'), ...columns, bigint('sequence'), bytea('hash')],
    [[base.chain, base.domain, ...begins, sequence, hash]],
  )
}

/** Records that follow each other and go into one table. */
const runsOf = (records: readonly StoreRecord[]): StoreRecord[][] => {
  const runs: StoreRecord[][] = []
  for (const record of records) {
    const last = runs.at(-1)
    if (last?.[0] !== undefined && labelOf(last[0]) === labelOf(record)) last.push(record)
    else runs.push([record])
  }
  return runs
}

const of = <K extends StoreRecord['kind']>(run: readonly StoreRecord[]): readonly RecordOf<K>[] =>
  run.map(({ record }) => record as RecordOf<K>)
