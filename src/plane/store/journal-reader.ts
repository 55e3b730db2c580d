// The reading end of the journal.

import type { JournalEntry } from '#domain/journal-entry.ts'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import { cursorOf, readCursor } from './journal-cursor.ts'
import { hexOf } from './journal-chain.ts'
import type { Journal } from './journal.ts'
import type { JournalRow } from './journal-table.ts'
import { CursorUnknown } from './store-errors.ts'
import type { HeadSigner, JournalHead, JournalQuery, JournalReader, StoredEntry, Verification } from './store.ts'
import { checkBase, startCheck } from './verify-journal.ts'

export type JournalReaderDeps = { readonly clock: Clock; readonly timers: Timers; readonly signer: HeadSigner }

/** How long verification keeps the event loop to itself: enrollments go on beside it. */
const turnMs = 8
const batchSize = 64
const everything = { node: null, type: null }
const noBase = 'the record of where the journal begins is missing'

export const openJournalReader = (deps: JournalReaderDeps, journal: Journal): JournalReader => {
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

  const verify = async (): Promise<Verification> => {
    const written = journal.head()?.sequence ?? 0
    const base = table.base()
    if (base === null)
      return written === 0 && table.newest() === null
        ? { kind: 'intact', entries: 0, heads: [] }
        : { kind: 'broken', chain: chainOf(journal), from: 1, to: 1, entries: 0, why: noBase }
    const check = startCheck(deps.signer, base)
    let broken = checkBase(deps.signer, base)
    let at = base.sequence
    let turnEndsMs = deps.clock.monotonicMs() + turnMs
    while (broken === null && at < written) {
      const rows = table.after(at, batchSize, everything)
      for (const row of rows) {
        broken = check.step(row)
        if (broken !== null) break
        at = row.sequence
        if (at === written) break
      }
      if (rows.length === 0) break
      if (deps.clock.monotonicMs() < turnEndsMs) continue
      await new Promise<void>((resolve) => deps.timers.soon(resolve))
      turnEndsMs = deps.clock.monotonicMs() + turnMs
    }
    const entries = at - base.sequence
    broken ??= check.end(written) ?? strangers(journal)
    return broken === null
      ? { kind: 'intact', entries, heads: heads() }
      : { kind: 'broken', chain: base.chain, ...broken, entries }
  }

  return {
    read: async (query) => read(query),
    heads: async () => heads(),
    hashAt: async (chain, sequence) => hashAt(chain, sequence),
    verify,
  }
}

/** Entries behind the newest one this store has written. */
const strangers = (journal: Journal) => {
  const written = journal.head()?.sequence ?? 0
  const newest = journal.table.newest()?.sequence ?? 0
  return newest > written
    ? { from: written + 1, to: newest, why: `entries behind ${written} were not written by this plane` }
    : null
}

const behind = (journal: Journal, query: JournalQuery): number => {
  if (query.after === null) return 0
  const place = readCursor(query.after)
  if (place === null || place.chain !== chainOf(journal)) throw new CursorUnknown()
  return place.sequence
}

const chainOf = (journal: Journal): string => journal.head()?.chain ?? ''

const stored = (row: JournalRow): StoredEntry => {
  const entry = JSON.parse(row.bytes) as JournalEntry
  return { cursor: cursorOf(entry.chain, row.sequence), entry, bytes: row.bytes, hash: hexOf(row.hash) }
}
