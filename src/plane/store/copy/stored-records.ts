// Everything a store holds, read page by page in an order both stores keep, so that equal stores give equal records.

import type { RowKind, RowTypes } from '#domain/core/change.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { ChainHead } from './examine.ts'
import { damagedStore } from './transfer-errors.ts'
import type { Counts, RecordOf, TransferRecord } from './transfer-record.ts'

export type StoredRow = Readonly<Record<string, unknown>>

/** Of both stores what transfer needs: their statements are the same but for these. */
export type ReadableStore = {
  /** `?` stands for each value, in order. What it returns is of one moment, from the first call to the last. */
  query(text: string, values: readonly (string | number)[]): Promise<readonly StoredRow[]>
  readonly dialect: Dialect
  /** Sealed, by name; without those that every plane makes for itself. */
  keys(): Promise<ReadonlyMap<string, string>>
}

export type Dialect = {
  readonly store: 'sqlite' | 'postgres'
  /** The column by which tokens were made one after the other. */
  readonly tokenOrder: string
  /** chain, domain, sequence, hash, signature, key_id of where each chain begins. */
  readonly chains: string
  /** Whether entries have a column with their chain; else all of them are of the only one. */
  readonly chainColumn: boolean
  /** The newest place of every chain where the store says so beside the entries; null: it does not. */
  readonly heads: string | null
}

const pageSize = 500

const fewFirst: readonly RowKind[] = [
  'domain',
  'profile',
  'issuer',
  'operator-key',
  'node',
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
]

/** Every table that is moved, and the label its rows are counted under. */
export const movedTables: readonly (readonly [label: keyof Counts, table: string])[] = [
  ...fewFirst.map((kind) => [kind, tableShapes[kind].table] as const),
  ['hardware', 'hardware'],
  ['observation', 'observation'],
  ['webhook', 'webhook_progress'],
  ['entry', 'journal'],
]

export const countStored = async (store: ReadableStore): Promise<Counts> => {
  const counts: Record<string, number> = {
    key: (await store.keys()).size,
    chain: (await store.query(store.dialect.chains, [])).length,
  }
  for (const [label, table] of movedTables) {
    const [found] = await store.query(`SELECT count(*) AS count FROM ${table}`, [])
    counts[label] = Number(found?.['count'])
  }
  return counts as Counts
}

export async function* storedRecords(store: ReadableStore): AsyncGenerator<TransferRecord, void, void> {
  const keys = [...(await store.keys())].sort(([one], [other]) => (one < other ? -1 : 1))
  for (const [key, sealed] of keys) yield { kind: 'key', record: { key, sealed } }
  for (const kind of fewFirst) yield* rowsOf(store, kind)
  for await (const row of pages(store, 'SELECT value AS place, node FROM hardware', 'value', ''))
    yield { kind: 'hardware', record: { hardware: text(row, 'place'), node: text(row, 'node') } }
  yield* observationsOf(store)
  for (const row of await store.query('SELECT doc FROM webhook_progress', []))
    yield { kind: 'webhook', record: { webhook: json(text(row, 'doc')) } }
  yield* chainsOf(store)
}

async function* rowsOf(store: ReadableStore, kind: RowKind): AsyncGenerator<TransferRecord, void, void> {
  const { table, key } = tableShapes[kind] as { table: string; key: (value: RowTypes[RowKind]) => string }
  const [order, first] = kind === 'token' ? [store.dialect.tokenOrder, 0] : ['key', '']
  for await (const row of pages(store, `SELECT ${order} AS place, key, version, doc FROM ${table}`, order, first)) {
    const value = json(text(row, 'doc'))
    if (key(value as RowTypes[RowKind]) !== row['key'])
      throw damagedStore(`a ${kind} is filed under another key than its own`)
    yield { kind: 'row', record: { row: kind, version: Number(row['version']), value } }
  }
}

async function* observationsOf(store: ReadableStore): AsyncGenerator<TransferRecord, void, void> {
  const select = `SELECT node AS place, last_seen_ms, agent_version, source, config_revision, report, rehearsed_at_ms,
    evidence, capabilities, overlay FROM observation`
  for await (const row of pages(store, select, 'node', '')) {
    const seen = row as Omit<
      RecordOf<'observation'>,
      'observation' | 'report' | 'evidence' | 'capabilities' | 'overlay'
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
      },
    }
  }
}

async function* chainsOf(store: ReadableStore): AsyncGenerator<TransferRecord, void, void> {
  for (const base of await store.query(`${store.dialect.chains} ORDER BY chain`, [])) {
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
    const select = `SELECT sequence AS place, bytes, hash, signature, key_id FROM journal`
    const ofChain = store.dialect.chainColumn ? { chain } : null
    for await (const row of pages(store, select, 'sequence', 0, ofChain)) {
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

/** Null: the store has no record of where its chains end. */
export const recordedHeads = async (store: ReadableStore): Promise<readonly ChainHead[] | null> => {
  if (store.dialect.heads === null) return null
  const rows = await store.query(store.dialect.heads, [])
  return rows.map((row) => ({
    chain: text(row, 'chain'),
    sequence: Number(row['sequence']),
    hash: bytes(row, 'hash').toString('hex'),
  }))
}

/** By place: whatever was read last, the next page begins behind it. */
async function* pages(
  store: ReadableStore,
  select: string,
  order: string,
  first: string | number,
  only: { readonly chain: string } | null = null,
): AsyncGenerator<StoredRow, void, void> {
  const where = only === null ? '' : 'chain = ? AND '
  const statement = `${select} WHERE ${where}${order} > ? ORDER BY ${order} LIMIT ${pageSize}`
  for (let after: string | number = first; ;) {
    const rows = await store.query(statement, only === null ? [after] : [only.chain, after])
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return
    after = last['place'] as string | number
  }
}

const text = (row: StoredRow, column: string): string => row[column] as string

const bytes = (row: StoredRow, column: string): Buffer => {
  const value = row[column] as Uint8Array
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

const jsonOrNull = (row: StoredRow, column: string): object | null =>
  row[column] === null ? null : json(text(row, column))

const json = (document: string): object => {
  try {
    return JSON.parse(document) as object
  } catch {
    throw damagedStore('a document in it is not readable')
  }
}
