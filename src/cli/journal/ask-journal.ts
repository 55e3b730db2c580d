// Pages of the journal, as every verb of `muster journal` asks for them.

import type { Static } from 'typebox'
import { journalApi, type JournalAnswer } from '#wire/journal/journal-api.ts'
import type { GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'

export type JournalFilter = GlobalOptions & { readonly node?: string; readonly type?: string }
type JournalPage = Static<typeof JournalAnswer>
type JournalPlace = {
  readonly last?: number
  readonly limit?: number
  readonly after?: string | undefined
  readonly wait_ms?: number
  readonly since?: string
  readonly until?: string
  readonly actor?: string
  readonly correlation?: string
}

export const askJournal = (plane: OperatorClient, filter: JournalFilter, page: JournalPlace): Promise<JournalPage> =>
  plane.ask(journalApi.read, {
    query: { node: filter.node, type: filter.type, ...page },
    timeoutMs: 30_000 + (page.wait_ms ?? 0),
  })

export const countOption = (text: string): number => {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > 1000) throw usageFailure(`--last ${text} is not a number from 1 to 1000.`)
  return count
}
