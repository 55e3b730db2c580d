// The reading end of a journal of several chains.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { PgValue } from '#platform/postgres.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import { cursorAt, readCursor, type Places } from '#plane/store/journal/journal-cursor.ts'
import { CursorUnknown } from '#plane/store/contract/store-errors.ts'
import type { JournalHead, JournalQuery, JournalReader, StoredEntry } from '#plane/store/contract/store.ts'
import type { JournalRow } from '#plane/store/journal/journal-table.ts'
import { isEntryProven, missingPlace } from '#plane/store/journal/verify-journal.ts'
import {
  entriesAfter,
  everyChain,
  hashAt,
  hashBefore,
  lastEntries,
  newestSigned,
  page,
  type JournalFilter,
} from './journal-statements.ts'
import { newestOf, oldestFirst } from './merge-chains.ts'
import { verifyChains, type VerifyChainsDeps } from './verify-chains.ts'

export const openPgJournalReader = (deps: VerifyChainsDeps): JournalReader => {
  const heads = async (): Promise<readonly JournalHead[]> =>
    (await deps.access.read(newestSigned)).rows.map((row) => ({
      chain: row['chain'] as string,
      sequence: row['sequence'] as number,
      hash: hexOf(row['hash'] as Uint8Array),
      signature: Buffer.from(row['signature'] as Uint8Array).toString('base64url'),
      keyId: row['key_id'] as string,
    }))
  const placeHash = async (chain: string, sequence: number): Promise<string | null> => {
    const [row] = (await deps.access.read(hashAt, [chain, sequence])).rows
    return row === undefined ? null : hexOf(row['hash'] as Uint8Array)
  }
  return {
    read: (query) => (query.last === null ? readAfter(deps, query) : readLast(deps, query, query.last)),
    heads,
    hashAt: placeHash,
    isWhole: async () => (await deps.access.read(everyChain)).rows.every((row) => row['base_sequence'] === 0),
    async isProven(chain, sequence) {
      const [before] = (await deps.access.read(hashBefore, [chain, sequence])).rows
      if (before === undefined) return false
      const at = { chain, sequence, before: before['hash'] as Uint8Array }
      return isEntryProven(
        deps.signer,
        at,
        async (after, limit) =>
          (await deps.access.read(page, [chain, after, limit])).rows as unknown as readonly JournalRow[],
      )
    },
    async verify({ known = [], rest } = {}) {
      const verified = await verifyChains({ ...deps, rest })
      if (verified.kind === 'broken') return verified
      const missing = await missingPlace(known, placeHash)
      return missing === null ? verified : { kind: 'broken', ...missing, entries: verified.entries }
    },
  }
}

type Found = {
  readonly chain: string
  readonly sequence: number
  readonly operation: string
  readonly bytes: string
  readonly hash: Uint8Array
}

/** From `after` on each entry moves the place in its own chain, so what is committed late in another is still to come. */
const readAfter = async ({ access }: VerifyChainsDeps, query: JournalQuery): Promise<readonly StoredEntry[]> => {
  const after = query.after === null ? new Map<string, number>() : readCursor(query.after)
  if (after === null) throw new CursorUnknown()
  const { filter, values } = filtered(query)
  const all = [query.limit, ...values, [...after.keys()], [...after.values()]]
  const { found, chains } = foundIn((await access.read(entriesAfter[filter], all)).rows)
  if ([...after.keys()].some((chain) => !chains.has(chain))) throw new CursorUnknown()
  return withCursors(oldestFirst(found, query.limit), after)
}

/** Of what was asked for, everything that is older than these counts as read. */
const readLast = async (
  { access }: VerifyChainsDeps,
  query: JournalQuery,
  last: number,
): Promise<readonly StoredEntry[]> => {
  const count = Math.min(last, query.limit)
  const { filter, values } = filtered(query)
  const { found } = foundIn((await access.read(lastEntries[filter], [count, ...values])).rows)
  const newest = newestOf(found, count)
  const before = new Map<string, number>()
  for (const { chain, sequence } of found) before.set(chain, Math.max(sequence, before.get(chain) ?? 0))
  for (const { chain, sequence } of newest.toReversed()) before.set(chain, sequence - 1)
  return withCursors(newest, before)
}

const filtered = ({ node, type }: JournalQuery): { readonly filter: JournalFilter; readonly values: PgValue[] } => {
  const types = type === null ? [] : typeof type === 'string' ? [type] : type
  if (node !== null && type !== null) return { filter: 'both', values: [node, types] }
  if (node !== null) return { filter: 'node', values: [node] }
  return type === null ? { filter: 'all', values: [] } : { filter: 'type', values: [types] }
}

const foundIn = (
  rows: readonly object[],
): { readonly found: readonly Found[]; readonly chains: ReadonlySet<string> } => {
  const all = rows as readonly (Found & { readonly sequence: number | null })[]
  return { found: all.filter(({ sequence }) => sequence !== null), chains: new Set(all.map(({ chain }) => chain)) }
}

const withCursors = (rows: readonly Found[], before: Places): readonly StoredEntry[] => {
  const places = new Map([...before].filter(([, sequence]) => sequence > 0))
  return rows.map(({ chain, sequence, bytes, hash }) => {
    places.set(chain, sequence)
    return { cursor: cursorAt(places), entry: JSON.parse(bytes) as JournalEntry, bytes, hash: hexOf(hash) }
  })
}
