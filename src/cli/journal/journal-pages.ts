// Reading the journal page by page.

import type { Static } from 'typebox'
import { type JournalAnswer, type EntryView, journalApi } from '#wire/journal/journal-api.ts'
import type { GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'

export type JournalFilter = GlobalOptions & { readonly node?: string; readonly type?: string }
export type Entry = Static<typeof EntryView>
export type JournalPage = Static<typeof JournalAnswer>

export const askJournal = (
  plane: OperatorClient,
  filter: JournalFilter,
  page: { last?: number; limit?: number; after?: string; wait_ms?: number },
): Promise<JournalPage> =>
  plane.ask(journalApi.read, {
    query: { node: filter.node, type: filter.type, ...page },
    timeoutMs: 30_000 + (page.wait_ms ?? 0),
  })

export const countOption = (text: string): number => {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > 1000) throw usageFailure(`--last ${text} is not a number from 1 to 1000.`)
  return count
}
