// The reading end of the journal.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { cursorOf, readCursor } from '#plane/store/journal/journal-cursor.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import type { Journal } from './journal.ts'
import type { JournalRow } from '#plane/store/journal/journal-table.ts'
import { CursorUnknown } from '#plane/store/contract/store-errors.ts'
import type {
  JournalHead,
  JournalQuery,
  JournalReader,
  StoredEntry,
  Verification,
  VerifyOptions,
} from '#plane/store/contract/store.ts'
import {
  checkChain,
  isEntryProven,
  missingPlace,
  noBase,
  strangers,
  type CheckDeps,
} from '#plane/store/journal/verify-journal.ts'

const batchSize = 64
const everything = { node: null, type: null }

export const openJournalReader = (deps: CheckDeps, journal: Journal): JournalReader => {
  const { table } = journal

  const read = (query: JournalQuery): readonly StoredEntry[] => {
    if (query.last !== null) return table.last(Math.min(query.last, query.limit), query).map(stored)
    return table.after(behind(journal, query), query.limit, query).map(stored)
  }

  const heads = (): readonly JournalHead[] => {
    const row = table.newestSigned()
    if (row === null || row.signature === null || row.keyId === null) return []
    const signature = Buffer.from(row.signature).toString('base64url')
    return [{ chain: chainOf(journal), sequence: row.sequence, hash: hexOf(row.hash), signature, keyId: row.keyId }]
  }

  const hashAt = (chain: string, sequence: number): string | null => {
    if (chain !== chainOf(journal)) return null
    const [row] = table.after(sequence - 1, 1, everything)
    return row === undefined || row.sequence !== sequence ? null : hexOf(row.hash)
  }

  const verify = async ({ known = [], rest }: VerifyOptions = {}): Promise<Verification> => {
    const place = journal.head()
    const written = place?.sequence ?? 0
    // What is signed now is what is verified: an entry appended meanwhile is not reported as a head.
    const verified = heads().filter(({ sequence }) => sequence <= written)
    const base = table.base()
    if (base === null)
      return written === 0 && table.newest() === null && known.length === 0
        ? { kind: 'intact', entries: 0, heads: [] }
        : { kind: 'broken', chain: chainOf(journal), from: 1, to: 1, entries: 0, why: noBase }
    const checked = await checkChain({ ...deps, rest }, base, written, (at) => table.after(at, batchSize, everything))
    const { entries } = checked
    const broken = checked.broken ?? strangers(journal.head()?.sequence ?? 0, table.newest()?.sequence ?? 0)
    if (broken !== null) return { kind: 'broken', chain: base.chain, ...broken, entries }
    const missing = await missingPlace(known, hashAt)
    return missing === null ? { kind: 'intact', entries, heads: verified } : { kind: 'broken', ...missing, entries }
  }

  const isProven = async (chain: string, sequence: number): Promise<boolean> => {
    const base = table.base()
    if (base === null || chain !== base.chain || sequence <= base.sequence) return false
    const before = sequence === base.sequence + 1 ? base.hash : table.after(sequence - 2, 1, everything)[0]?.hash
    if (before === undefined) return false
    return isEntryProven(deps.signer, { chain, sequence, before }, (at, limit) => table.after(at, limit, everything))
  }

  return {
    read: async (query) => read(query),
    heads: async () => heads(),
    hashAt: async (chain, sequence) => hashAt(chain, sequence),
    isWhole: async () => (table.base()?.sequence ?? 0) === 0,
    isProven,
    verify,
  }
}

const behind = (journal: Journal, query: JournalQuery): number => {
  if (query.after === null) return 0
  const places = readCursor(query.after)
  const sequence = places?.get(chainOf(journal))
  if (places?.size !== 1 || sequence === undefined) throw new CursorUnknown()
  return sequence
}

const chainOf = (journal: Journal): string => journal.head()?.chain ?? ''

const stored = (row: JournalRow): StoredEntry => {
  const entry = JSON.parse(row.bytes) as JournalEntry
  return { cursor: cursorOf(entry.chain, row.sequence), entry, bytes: row.bytes, hash: hexOf(row.hash) }
}
