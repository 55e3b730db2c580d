// From rows of the journal to commits, in order and without a gap. A gap is never skipped: the entries behind it wait, and this
// replica falls behind.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { cursorOf } from '#plane/store/journal/journal-cursor.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import type { StoredEntry } from '#plane/store/contract/store.ts'

/** `hash`: hex, of the entry there; null where there is none, because the chain begins behind it. */
export type Position = { readonly sequence: number; readonly hash: string | null }

export type ChainRow = {
  readonly sequence: number
  readonly bytes: string
  readonly hash: Uint8Array
  /** JSON; on the first entry of a commit. */
  readonly touched: string | null
}

export type ReadCommit = {
  readonly entries: readonly StoredEntry[]
  readonly touched: readonly (readonly [kind: string, key: string])[]
  /** Behind it. */
  readonly position: Position
}

export type ChainReading = {
  /** Whole ones. */
  readonly commits: readonly ReadCommit[]
  /** Why nothing can be read behind them, ever. */
  readonly broken: string | null
}

/**
 * `rows`: the first rows from `position` on, itself included, in the order of their sequences. `end`: the end of the chain
 * according to its own row.
 */
export const readChain = (
  position: Position,
  rows: readonly ChainRow[],
  { atMost, end }: { readonly atMost: number; readonly end: number },
): ChainReading => {
  const behind = rows.filter((row) => row.sequence > position.sequence)
  const here = rows.length > behind.length ? hexOf((rows[0] as ChainRow).hash) : null
  if (position.hash !== null && here !== position.hash)
    return { commits: [], broken: `what stood at ${position.sequence} is not there any more` }

  let expected = position.sequence
  const unbroken: StoredEntry[] = []
  const touched = new Map<StoredEntry, string | null>()
  for (const row of behind) {
    if (row.sequence !== expected + 1) break
    expected = row.sequence
    const entry = JSON.parse(row.bytes) as JournalEntry
    const stored = { cursor: cursorOf(entry.chain, row.sequence), entry, bytes: row.bytes, hash: hexOf(row.hash) }
    unbroken.push(stored)
    touched.set(stored, row.touched)
  }
  const missing = expected < end && (unbroken.length < behind.length || rows.length < atMost)
  const commits = [...Map.groupBy(unbroken, ({ entry }) => commitOf(entry)).values()].map((entries) => {
    const [first, last] = [entries[0] as StoredEntry, entries.at(-1) as StoredEntry]
    return {
      entries,
      touched: JSON.parse(touched.get(first) ?? '[]') as ReadCommit['touched'],
      position: { sequence: last.entry.sequence, hash: last.hash },
    }
  })
  // The last one may go on behind what was read, unless the chain ends there.
  return {
    commits: expected === end ? commits : commits.slice(0, -1),
    broken: missing ? `the entry ${expected + 1} is missing` : null,
  }
}

/** Entries of one commit differ in the last part of their operation. */
const commitOf = ({ operation }: JournalEntry): string => operation.slice(0, operation.lastIndexOf('-'))
