// The journal: reading it, following it, and having it verified.

import type { Static } from 'typebox'
import { entryTypes, type EntryType, type JournalEntry } from '#domain/core/journal-entry.ts'
import { roleAllows } from '#domain/core/principal.ts'
import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isCursor } from '#plane/store/journal/journal-cursor.ts'
import type { JournalWatch, Verified } from './journal-watch.ts'
import { unknownFilter } from './unknown-filters.ts'
import { isoTime, parseIsoTime } from '#platform/clock.ts'
import { closestTo } from '#platform/closest-word.ts'
import { journalApi, type EntryView, type VerifyAnswer } from '#wire/journal/journal-api.ts'
import type { QueryOf } from '#wire/core/endpoint.ts'
import type { JournalReader, StoredEntry, JournalQuery } from '#plane/store/contract/store.ts'
import { answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { Core } from '#plane/core/core.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'

const usualPage = 100

/** A viewer is answered with a result of this age: verifying reads everything there is. */
const freshForMs = 3_600_000

export const operatorJournalRoutes = (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  { arrivals, journalWatch }: { readonly arrivals: Arrivals; readonly journalWatch: JournalWatch },
): readonly Route[] => {
  const verify = async (call: CallOf<typeof journalApi.verify>): Promise<Verified> => {
    const last = journalWatch.last()
    const mayRepeat = roleAllows(call.principal.role, 'operator')
    const ageMs = last === null ? Infinity : clock.nowMs() - last.finishedAtMs
    return last !== null && !mayRepeat && ageMs >= 0 && ageMs < freshForMs ? last : journalWatch.verify()
  }
  return serve(journalApi, {
    read: (call) => read(store, arrivals, call.query),
    verify: async (call) => answer(verificationView(await verify(call))),
  })
}

const read = async (store: Core['store'], arrivals: Arrivals, query: QueryOf<typeof journalApi.read>) => {
  const { journal } = store
  const { after: given = null, last = null, limit = usualPage, node = null, type = null, wait_ms: waitMs = 0 } = query
  if (given !== null && !isCursor(given))
    return refuseField('REQUEST_INVALID', 'after', 'after is not a cursor of this journal')
  if (type !== null && !isEntryType(type)) return refuseField('REQUEST_INVALID', 'type', unknownType(type))
  const times = timesIn(query)
  if (isRefusal(times)) return times
  // Of the first page: those behind it go on with the same filters. Who waits may wait for a node that is not registered yet.
  const unknown = given === null && waitMs === 0 ? await unknownFilter(store, query) : null
  if (unknown !== null) return unknown
  const after = given ?? (times.sinceMs === null ? null : await journal.placeBefore(times.sinceMs))
  const entries = await readJournal(journal, arrivals, { after, last, limit, node, type }, waitMs)
  if (isRefusal(entries)) return entries
  const [oldest] = entries
  const newest = entries.at(-1)
  const isOver = oldest !== undefined && oldest.entry.atMs > times.untilMs + clockSlackMs
  return answer({
    entries: entries
      .filter(({ entry }) => entry.atMs <= times.untilMs && isBy(entry, query.actor) && isOf(entry, query.correlation))
      .map(entryView),
    next: newest === undefined || isOver ? after : newest.cursor,
  })
}

const unknownType = (type: string): string => {
  const meant = closestTo(type, entryTypes)
  const guess = meant === null ? '' : `did you mean ${meant}? `
  return `${guess}there are entries of ${entryTypes.join(', ')}`
}

/** Entries of several planes are in the order of their writing; their clocks may differ. */
const clockSlackMs = 60_000

const timesIn = (query: QueryOf<typeof journalApi.read>) => {
  const { since, until, actor, correlation, last } = query
  if (last !== undefined && (since ?? until ?? actor ?? correlation) !== undefined)
    return refuseField('REQUEST_INVALID', 'last', 'last goes with neither since, until, actor nor correlation')
  const sinceMs = since === undefined ? null : parseIsoTime(since)
  if (since !== undefined && sinceMs === null) return refuseField('REQUEST_INVALID', 'since', 'since is not a time')
  const untilMs = until === undefined ? Infinity : parseIsoTime(until)
  if (untilMs === null) return refuseField('REQUEST_INVALID', 'until', 'until is not a time')
  return { kind: 'times' as const, sinceMs, untilMs }
}

const isBy = ({ actor }: JournalEntry, asked: string | undefined): boolean =>
  asked === undefined || actor === asked || actor.endsWith(`:${asked}`)

const isOf = ({ correlation }: JournalEntry, asked: string | undefined): boolean =>
  asked === undefined || correlation === asked

const isEntryType = (type: string): type is EntryType => (entryTypes as readonly string[]).includes(type)

const entryView = ({ cursor, hash, bytes, entry: { atMs } }: StoredEntry): Static<typeof EntryView> => ({
  cursor,
  at: isoTime(atMs),
  hash,
  entry: JSON.parse(bytes) as Record<string, unknown>,
})

const verificationView = ({ journal, rows, finishedAtMs }: Verified): Static<typeof VerifyAnswer> => {
  const differences = rows.differences.map(({ row, subject, why, fence }) => ({
    ...{ row, subject, why },
    fenced: fence !== null,
  }))
  const compared = { nodes: rows.nodes, tokens: rows.tokens, differences, more: rows.more }
  const { entries } = journal
  const shared = { entries, rows: compared, verified_at: isoTime(finishedAtMs) }
  if (journal.kind === 'intact') {
    const heads = journal.heads.map(({ chain, sequence, hash, keyId }) => ({ chain, sequence, hash, key_id: keyId }))
    return { ...shared, intact: differences.length === 0, heads, broken: null }
  }
  const { chain, from, to, why } = journal
  return { ...shared, intact: false, heads: [], broken: { chain, from, to, why } }
}

// Reading the journal, and waiting for what comes: how `journal follow` works.

const readJournal = async (
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
