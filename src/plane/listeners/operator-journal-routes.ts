// The journal: reading it, following it, and having it verified.

import type { Static } from 'typebox'
import { entryTypes, type EntryType } from '#domain/journal-entry.ts'
import { isRefusal, refuse, type Refusal } from '#domain/refusal.ts'
import { readJournal, type ReadJournalDeps } from '#plane/flows/read-journal.ts'
import { isCursor } from '#plane/store/journal-cursor.ts'
import type { Verification } from '#plane/store/store.ts'
import { entryView, verificationView } from '#plane/views/journal-view.ts'
import { EmptyRequest, JournalAnswer, JournalQueryBody, VerifyAnswer } from '#wire/operator-api.ts'
import { answer, type Answer, type Route } from './route.ts'

const usualPage = 100

export const operatorJournalRoutes = (deps: ReadJournalDeps): readonly Route[] => {
  // Verifying reads everything there is: callers who ask meanwhile get the result that is on its way.
  let underWay: Promise<Verification> | null = null
  const verify = (): Promise<Verification> => {
    underWay ??= deps.store.journal.verify().finally(() => {
      underWay = null
    })
    return underWay
  }
  return [
    {
      method: 'GET',
      path: '/v1/journal',
      access: 'viewer',
      summary: 'Entries of the journal, oldest first; with wait_ms, waits for new ones',
      query: JournalQueryBody,
      answer: JournalAnswer,
      handle: (call) => read(deps, call.query),
    },
    {
      method: 'POST',
      path: '/v1/journal/verify',
      access: 'viewer',
      summary: 'Recomputes every hash and checks every signed head',
      body: EmptyRequest,
      answer: VerifyAnswer,
      handle: async () => answer(verificationView(await verify())),
    },
  ]
}

const read = async (deps: ReadJournalDeps, query: Static<typeof JournalQueryBody>): Promise<Answer | Refusal> => {
  const { after = null, last = null, limit = usualPage, node = null, type = null, wait_ms: waitMs = 0 } = query
  if (after !== null && !isCursor(after)) return refuse('REQUEST_INVALID', 'after is not a cursor of this journal')
  if (type !== null && !isEntryType(type))
    return refuse('REQUEST_INVALID', `there are entries of ${entryTypes.join(', ')}`)
  const entries = await readJournal(deps, { after, last, limit, node, type }, waitMs)
  if (isRefusal(entries)) return entries
  const newest = entries.at(-1)
  return answer({ entries: entries.map(entryView), next: newest === undefined ? after : newest.cursor })
}

const isEntryType = (type: string): type is EntryType => (entryTypes as readonly string[]).includes(type)
