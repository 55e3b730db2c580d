// The reading end of a journal of one chain or several.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { turn } from '#platform/timers.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import type { JournalRow } from '#plane/store/journal/journal-chain.ts'
import { cursorAt, readCursor, type Places } from '#plane/store/journal/journal-cursor.ts'
import { CursorUnknown } from '#plane/store/contract/store-errors.ts'
import type { HeadSigner, JournalHead, JournalQuery, JournalReader } from '#plane/store/contract/store.ts'
import type { StoreCore, StoredEntry } from '#plane/store/contract/store.ts'
import { isEntryProven, missingPlace } from '#plane/store/journal/verify-journal.ts'
import { placeBefore } from './journal-place.ts'
import { newestOf, oldestFirst } from './merge-chains.ts'
import type { Sql, SqlStatement } from './sql.ts'
import { chainStatements, verifyChains, type KnownEnds } from './verify-chains.ts'

export type JournalReaderParts = {
  readonly sql: Pick<Sql, 'read' | 'dialect'>
  readonly signer: HeadSigner
  readonly runs: JournalRuns
  readonly ends: KnownEnds
}

/** Of every chain a run of entries, all of one moment. A limit and a count are of each chain. */
export type JournalRuns = {
  /** Behind a place of each chain; from its beginning where none is given. */
  after(filter: JournalFilter, places: Places, limit: number): Promise<FoundRuns>
  last(filter: JournalFilter, count: number): Promise<FoundRuns>
}

/** `types`: entries of any of them; null: of every type. */
export type JournalFilter = { readonly node: string | null; readonly types: readonly string[] | null }

export type FoundRuns = { readonly entries: readonly FoundEntry[]; readonly chains: ReadonlySet<string> }

export type FoundEntry = {
  readonly chain: string
  readonly sequence: number
  readonly operation: string
  readonly bytes: string
  readonly hash: Uint8Array
}

export const openJournalReader = (
  { clock, timers }: Pick<StoreCore, 'clock' | 'timers'>,
  { sql, signer, runs, ends }: JournalReaderParts,
): JournalReader => {
  const { page } = chainStatements(sql.dialect)
  const { newestSigned, hashAt, hashBefore } = statementsIn(sql)

  const placeHash = async (chain: string, sequence: number): Promise<string | null> => {
    const [row] = await sql.read(hashAt, [chain, sequence])
    return row === undefined ? null : hexOf(row['hash'] as Uint8Array)
  }
  return {
    read: (query) => (query.last === null ? readAfter(runs, query) : readLast(runs, query, query.last)),
    heads: async (): Promise<readonly JournalHead[]> =>
      (await sql.read(newestSigned)).map((row) => ({
        chain: row['chain'] as string,
        sequence: row['sequence'] as number,
        hash: hexOf(row['hash'] as Uint8Array),
        signature: Buffer.from(row['signature'] as Uint8Array).toString('base64url'),
        keyId: row['key_id'] as string,
      })),
    placeBefore: (atMs) => placeBefore(sql, atMs),
    hashAt: placeHash,
    isWhole: async () => (await sql.read(bases)).every((row) => row['base_sequence'] === 0),
    async isProven(chain, sequence) {
      const [before] = await sql.read(hashBefore, [chain, sequence])
      if (before === undefined) return false
      const at = { chain, sequence, before: before['hash'] as Uint8Array }
      return isEntryProven(
        signer,
        at,
        async (after, limit) => (await sql.read(page, [chain, after, limit])) as unknown as readonly JournalRow[],
      )
    },
    async verify({ known = [], rest = () => turn(timers) } = {}) {
      const verified = await verifyChains(clock, sql, signer, ends, rest)
      if (verified.kind === 'broken') return verified
      const missing = await missingPlace(known, placeHash)
      return missing === null ? verified : { kind: 'broken', ...missing, entries: verified.entries }
    },
  }
}

/** From `after` on each entry moves the place in its own chain, so what is committed late in another is still to come. */
const readAfter = async (runs: JournalRuns, query: JournalQuery): Promise<readonly StoredEntry[]> => {
  const after = query.after === null ? new Map<string, number>() : readCursor(query.after)
  if (after === null) throw new CursorUnknown()
  const { entries, chains } = await runs.after(filterOf(query), after, query.limit)
  if ([...after.keys()].some((chain) => !chains.has(chain))) throw new CursorUnknown()
  return withCursors(oldestFirst(entries, query.limit), after)
}

/** Of what was asked for, everything that is older than these counts as read. */
const readLast = async (runs: JournalRuns, query: JournalQuery, last: number): Promise<readonly StoredEntry[]> => {
  const count = Math.min(last, query.limit)
  const { entries } = await runs.last(filterOf(query), count)
  const newest = newestOf(entries, count)
  const before = new Map<string, number>()
  for (const { chain, sequence } of entries) before.set(chain, Math.max(sequence, before.get(chain) ?? 0))
  for (const { chain, sequence } of newest.toReversed()) before.set(chain, sequence - 1)
  return withCursors(newest, before)
}

const filterOf = ({ node, type }: JournalQuery): JournalFilter => ({
  node,
  types: type === null ? null : typeof type === 'string' ? [type] : type,
})

const withCursors = (entries: readonly FoundEntry[], before: Places): readonly StoredEntry[] => {
  const places = new Map([...before].filter(([, sequence]) => sequence > 0))
  return entries.map(({ chain, sequence, bytes, hash }) => {
    places.set(chain, sequence)
    return { cursor: cursorAt(places), entry: JSON.parse(bytes) as JournalEntry, bytes, hash: hexOf(hash) }
  })
}

const bases: SqlStatement = { name: 'journal-bases', text: 'SELECT base_sequence FROM chain' }

const statementsIn = ({ dialect: { entries } }: Pick<Sql, 'dialect'>) => ({
  newestSigned: {
    name: 'journal-heads',
    text: `SELECT chain.chain, head.sequence, head.hash, head.signature, head.key_id
      FROM chain JOIN ${entries} AS head ON head.chain = chain.chain AND head.sequence = (
        SELECT sequence FROM ${entries} AS signed WHERE signed.chain = chain.chain AND signature IS NOT NULL
        ORDER BY sequence DESC LIMIT 1)
      ORDER BY chain.chain`,
  },
  hashAt: { name: 'journal-hash-at', text: `SELECT hash FROM ${entries} WHERE chain = $1 AND sequence = $2` },
  /** What the entry at this place is chained to: the entry before it, or the base. */
  hashBefore: {
    name: 'journal-hash-before',
    text: `SELECT hash FROM ${entries} WHERE chain = $1 AND sequence = $2 - 1
      UNION ALL SELECT base_hash FROM chain WHERE chain = $1 AND base_sequence = $2 - 1 LIMIT 1`,
  },
})
