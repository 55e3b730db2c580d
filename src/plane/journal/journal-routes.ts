// The journal: reading it, following it, and having it verified.

import type { Static } from 'typebox'
import { entryTypes, type EntryType } from '#domain/core/journal-entry.ts'
import { roleAllows } from '#domain/core/principal.ts'
import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { readJournal, type ReadJournalDeps } from './read-journal.ts'
import { isCursor } from '#plane/store/journal/journal-cursor.ts'
import type { JournalWatch, Verified } from './journal-watch.ts'
import { entryView, verificationView } from './journal-view.ts'
import type { Clock } from '#platform/clock.ts'
import { EmptyRequest, JournalAnswer, JournalQueryBody, VerifyAnswer } from '#wire/api/operator-api.ts'
import { operatorOf } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

const usualPage = 100

export type JournalRoutesDeps = ReadJournalDeps & { readonly clock: Clock; readonly journalWatch: JournalWatch }

/** A viewer is answered with a result of this age: verifying reads everything there is. */
const freshForMs = 3_600_000

export const operatorJournalRoutes = (deps: JournalRoutesDeps): readonly Route[] => {
  const verify = async (call: Call): Promise<Verified> => {
    const last = deps.journalWatch.last()
    const mayRepeat = roleAllows(operatorOf(call).role, 'operator')
    const ageMs = last === null ? Infinity : deps.clock.nowMs() - last.finishedAtMs
    return last !== null && !mayRepeat && ageMs >= 0 && ageMs < freshForMs ? last : deps.journalWatch.verify()
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
      summary:
        'Recomputes every hash, checks every signed head, and compares rows with entries; a viewer gets a result of the last hour',
      body: EmptyRequest,
      answer: VerifyAnswer,
      handle: async (call) => answer(verificationView(await verify(call))),
    },
  ]
}

const read = async (deps: ReadJournalDeps, query: Static<typeof JournalQueryBody>): Promise<Answer | Refusal> => {
  const { after = null, last = null, limit = usualPage, node = null, type = null, wait_ms: waitMs = 0 } = query
  if (after !== null && !isCursor(after))
    return refuseField('REQUEST_INVALID', 'after', 'after is not a cursor of this journal')
  if (type !== null && !isEntryType(type))
    return refuseField('REQUEST_INVALID', 'type', `there are entries of ${entryTypes.join(', ')}`)
  const entries = await readJournal(deps, { after, last, limit, node, type }, waitMs)
  if (isRefusal(entries)) return entries
  const newest = entries.at(-1)
  return answer({ entries: entries.map(entryView), next: newest === undefined ? after : newest.cursor })
}

const isEntryType = (type: string): type is EntryType => (entryTypes as readonly string[]).includes(type)
