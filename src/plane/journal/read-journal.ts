// Reading the journal, and waiting for what comes: how `journal follow` works.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'
import type { JournalQuery, JournalReader, StoredEntry } from '#plane/store/contract/store.ts'

export const readJournal = async (
  journal: JournalReader,
  arrivals: Arrivals,
  query: JournalQuery,
  waitMs: number,
): Promise<readonly StoredEntry[] | Refusal> => {
  if (waitMs === 0) return journal.read(query)
  const arrival = arrivals.expect((entry) => fits(query, entry))
  if (arrival.kind === 'refused') return arrival
  try {
    const entries = await journal.read(query)
    if (entries.length > 0) return entries
    await arrival.within(waitMs)
    return await journal.read(query)
  } finally {
    arrival.cancel()
  }
}

const fits = ({ node, type }: JournalQuery, entry: JournalEntry): boolean =>
  (node === null || entry.node === node) && (type === null || entry.type === type)
