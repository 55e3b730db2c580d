// Everything a store holds, read page by page in an order both stores keep, so that equal stores give equal records.

import type { RowKind, RowTypes } from '#domain/core/change.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { Sql, SqlRow, SqlStatement } from '#plane/store/sql/sql.ts'
import { damagedStore } from './copy-refusal.ts'
import type { ChainHead } from './examine.ts'
import type { Counts, RecordOf, StoreRecord } from './store-record.ts'

export type ReadableStore = {
  /** What it reads is of one moment, from the first call to the last. */
  readonly sql: Pick<Sql, 'read' | 'dialect'>
  /** Sealed, by name; without those that every plane makes for itself. */
  keys(): Promise<ReadonlyMap<string, string>>
}

const pageSize = 500

const fewFirst: readonly RowKind[] = [
  'domain',
  'profile',
  'issuer',
  'operator-key',
  'node',
  'purged-node',
  'token',
  'certificate',
  'denial',
  'key-ban',
  'key-claim',
  'alert',
  'vcluster',
  'allocation',
  'wireguard-key',
  'overlay-address',
  'receipt',
  'plan',
  'peer-domain',
  'claim',
  'hardware-profile',
  'program',
  'name-claim',
  'task-signers',
  'worker-issuer',
  'worker',
  'task',
  'task-line',
  'task-rollout',
  'rollout-nodes',
  'run-tally',
  'outside-issuer',
  'order',
  'issuer-revocation',
  'issuer-migration',
]

/** Every table that is copied besides those of the journal, and the label its rows are counted under. */
export const copiedTables: readonly (readonly [label: keyof Counts, table: string])[] = [
  ...fewFirst.map((kind) => [kind, tableShapes[kind].table] as const),
  ['hardware', 'hardware'],
  ['observation', 'observation'],
  ['webhook', 'webhook_progress'],
]

const ask = (store: ReadableStore, text: string, values: readonly (string | number)[] = []) =>
  store.sql.read(named(text), values)

/** Each is parsed once, under a name made of its text: PostgreSQL takes no long ones. */
const named = (text: string): SqlStatement => ({ name: `copy-${sha256Hex(text).slice(0, 16)}`, text })

export const countStored = async (store: ReadableStore): Promise<Counts> => {
  const counts: Record<string, number> = { key: (await store.keys()).size }
  const journal = [['chain', 'chain'] as const, ['entry', store.sql.dialect.entries] as const]
  for (const [label, table] of [...copiedTables, ...journal]) {
    const [found] = await ask(store, `SELECT count(*) AS count FROM ${table}`)
    counts[label] = Number(found?.['count'])
  }
  return counts as Counts
}

export async function* storedRecords(store: ReadableStore): AsyncGenerator<StoreRecord, void, void> {
  const keys = [...(await store.keys())].sort(([one], [other]) => (one < other ? -1 : 1))
  for (const [key, sealed] of keys) yield { kind: 'key', record: { key, sealed } }
  for (const kind of fewFirst) yield* rowsOf(store, kind)
  for await (const row of pages(store, 'SELECT value AS place, node FROM hardware', 'value', ''))
    yield { kind: 'hardware', record: { hardware: text(row, 'place'), node: text(row, 'node') } }
  yield* observationsOf(store)
  for (const row of await ask(store, 'SELECT doc FROM webhook_progress'))
    yield { kind: 'webhook', record: { webhook: json(text(row, 'doc')) } }
  yield* chainsOf(store)
}

async function* rowsOf(store: ReadableStore, kind: RowKind): AsyncGenerator<StoreRecord, void, void> {
  const { table, key } = tableShapes[kind] as { table: string; key: (value: RowTypes[RowKind]) => string }
  const [order, first] = kind === 'token' ? [store.sql.dialect.tokenOrder, 0] : ['key', '']
  for await (const row of pages(store, `SELECT ${order} AS place, key, version, doc FROM ${table}`, order, first)) {
    const value = store.sql.dialect.whole(kind, json(text(row, 'doc')))
    if (key(value as RowTypes[RowKind]) !== row['key'])
      throw damagedStore(`a ${kind} is filed under another key than its own`)
    yield { kind: 'row', record: { row: kind, version: Number(row['version']), value } }
  }
}

async function* observationsOf(store: ReadableStore): AsyncGenerator<StoreRecord, void, void> {
  const select = `SELECT node AS place, last_seen_ms, agent_version, source, config_revision, report, rehearsed_at_ms,
    evidence, capabilities, overlay, outputs, task_verifiers, issuer_roots FROM observation`
  for await (const row of pages(store, select, 'node', '')) {
    const seen = row as Omit<
      RecordOf<'observation'>,
      'observation' | 'report' | 'evidence' | 'capabilities' | 'overlay' | 'outputs'
    >
    yield {
      kind: 'observation',
      record: {
        observation: text(row, 'place'),
        last_seen_ms: seen.last_seen_ms,
        agent_version: seen.agent_version,
        source: seen.source,
        config_revision: seen.config_revision,
        report: jsonOrNull(row, 'report'),
        rehearsed_at_ms: seen.rehearsed_at_ms,
        evidence: jsonOrNull(row, 'evidence'),
        capabilities: jsonOrNull(row, 'capabilities'),
        overlay: jsonOrNull(row, 'overlay'),
        outputs: jsonOrNull(row, 'outputs') as object[] | null,
        task_verifiers: seen.task_verifiers ?? null,
        issuer_roots: seen.issuer_roots ?? null,
      },
    }
  }
}

async function* chainsOf(store: ReadableStore): AsyncGenerator<StoreRecord, void, void> {
  const bases = `SELECT chain, domain, base_sequence AS sequence, base_hash AS hash, base_signature AS signature,
    base_key_id AS key_id FROM chain ORDER BY chain`
  for (const base of await ask(store, bases)) {
    const chain = text(base, 'chain')
    yield {
      kind: 'chain',
      record: {
        chain,
        domain: text(base, 'domain'),
        sequence: Number(base['sequence']),
        hash: bytes(base, 'hash').toString('hex'),
        signature: bytes(base, 'signature').toString('base64url'),
        key_id: text(base, 'key_id'),
      },
    }
    const select = `SELECT sequence AS place, bytes, hash, signature, key_id FROM ${store.sql.dialect.entries}`
    for await (const row of pages(store, select, 'sequence', 0, chain)) {
      const { signature, key_id: keyId } = row
      yield {
        kind: 'entry',
        record: {
          entry: Number(row['place']),
          bytes: text(row, 'bytes'),
          hash: bytes(row, 'hash').toString('hex'),
          signature: signature === null ? null : bytes(row, 'signature').toString('base64url'),
          key_id: keyId === null ? null : text(row, 'key_id'),
        },
      }
    }
  }
}

/** Where every chain ends, as the store itself has it. */
export const recordedHeads = async (store: ReadableStore): Promise<readonly ChainHead[]> =>
  (await ask(store, 'SELECT chain, sequence, hash FROM chain ORDER BY chain')).map((row) => ({
    chain: text(row, 'chain'),
    sequence: Number(row['sequence']),
    hash: bytes(row, 'hash').toString('hex'),
  }))

/** The chain with the newest entry: a store that writes one chain continues this one. Null: the journal is empty. */
export const newestChain = async (store: ReadableStore): Promise<string | null> => {
  const rows = await ask(
    store,
    `SELECT chain, (SELECT newest.operation FROM ${store.sql.dialect.entries} AS newest
      WHERE newest.chain = chain.chain ORDER BY newest.sequence DESC LIMIT 1) AS operation FROM chain`,
  )
  const found = rows.map((row) => ({ chain: text(row, 'chain'), operation: (row['operation'] ?? '') as string }))
  const [newest] = found.sort((one, other) => (one.operation > other.operation ? -1 : 1))
  return newest?.chain ?? null
}

/** By place: the next page begins behind the last row read. */
async function* pages(
  store: ReadableStore,
  select: string,
  order: string,
  first: string | number,
  chain: string | null = null,
): AsyncGenerator<SqlRow, void, void> {
  const where = chain === null ? '' : 'chain = $2 AND '
  const statement = `${select} WHERE ${where}${order} > $1 ORDER BY ${order} LIMIT ${pageSize}`
  for (let after: string | number = first; ;) {
    const rows = await ask(store, statement, chain === null ? [after] : [after, chain])
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return
    after = last['place'] as string | number
  }
}

const text = (row: SqlRow, column: string): string => row[column] as string

const bytes = (row: SqlRow, column: string): Buffer => {
  const value = row[column] as Uint8Array
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

const jsonOrNull = (row: SqlRow, column: string): object | null =>
  row[column] === null ? null : json(text(row, column))

const json = (document: string): object => {
  try {
    return JSON.parse(document) as object
  } catch {
    throw damagedStore('a document in it is not readable')
  }
}
