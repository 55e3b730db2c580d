// The journal's entries about alerts, in their order. The journal finds entries of one type at a time.

import type { Cursor, JournalReader, StoredEntry } from '#plane/store/store.ts'
import { alertEntryTypes } from './webhook-message.ts'

export const readAlertEntries = async (
  journal: Pick<JournalReader, 'read'>,
  after: Cursor | null,
  limit: number,
): Promise<readonly StoredEntry[]> => {
  const pages = await Promise.all(
    alertEntryTypes.map((type) => journal.read({ after, last: null, limit, node: null, type })),
  )
  // What is missing of one type lies behind everything that was read of it, so behind the first `limit` of all.
  return pages
    .flat()
    .toSorted((a, b) => a.entry.sequence - b.entry.sequence)
    .slice(0, limit)
}
