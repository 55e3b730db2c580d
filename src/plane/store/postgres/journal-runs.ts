// How the journal is read: of every chain a run of entries, found by an index, all in one statement and so at one moment.

import type { PgRow, PgValue, Prepared } from '#platform/postgres.ts'
import type { FoundEntry, FoundRuns, JournalFilter, JournalRuns } from '#plane/store/sql/journal-reader.ts'
import type { PgAccess } from './pg-access.ts'

export const openPgJournalRuns = (access: Pick<PgAccess, 'read'>): JournalRuns => ({
  async after(filter, places, limit) {
    const given = [[...places.keys()], [...places.values()]]
    const { rows } = await access.read(entriesAfter[kindOf(filter)], [limit, ...valuesOf(filter), ...given])
    return foundIn(rows)
  },
  async last(filter, count) {
    const { rows } = await access.read(lastEntries[kindOf(filter)], [count, ...valuesOf(filter)])
    return foundIn(rows)
  },
})

/** Every chain comes at least once, with nulls where there is nothing to read. */
const foundIn = (rows: readonly PgRow[]): FoundRuns => {
  const all = rows as unknown as readonly (FoundEntry & { readonly sequence: number | null })[]
  return { entries: all.filter(({ sequence }) => sequence !== null), chains: new Set(all.map(({ chain }) => chain)) }
}

const filterKinds = ['all', 'node', 'type', 'both'] as const
/** By node, by types, by both, or not at all: a condition that may be switched off keeps the planner from its indexes. */
type FilterKind = (typeof filterKinds)[number]

const kindOf = ({ node, types }: JournalFilter): FilterKind => {
  if (node !== null) return types === null ? 'node' : 'both'
  return types === null ? 'all' : 'type'
}
const valuesOf = ({ node, types }: JournalFilter): PgValue[] => [node, types].filter((value) => value !== null)

/** Parameters: the limit, then the node, then the types, as far as they are filtered by; `more` is the next one. */
const runs = (kind: FilterKind, from: string, order: string): { readonly text: string; readonly more: number } => {
  const select = (where: string): string =>
    `SELECT sequence, operation, bytes, hash FROM journal
       WHERE journal.chain = place.chain${from}${where} ORDER BY sequence ${order} LIMIT $1`
  switch (kind) {
    case 'all':
      return { text: select(''), more: 2 }
    case 'node':
      return { text: select(' AND node = $2'), more: 3 }
    case 'both':
      return { text: select(' AND node = $2 AND type = ANY($3::text[])'), more: 4 }
    case 'type':
      // One type at a time: the index has the entries of each in order.
      return {
        text: `SELECT found.* FROM unnest($2::text[]) AS wanted (type)
          CROSS JOIN LATERAL (${select(' AND journal.type = wanted.type')}) AS found`,
        more: 3,
      }
  }
}

const read = (places: string, run: string): string =>
  `SELECT place.chain, entry.* FROM (${places}) AS place LEFT JOIN LATERAL (${run}) AS entry ON true`

const each = (make: (kind: FilterKind) => Prepared): Readonly<Record<FilterKind, Prepared>> =>
  Object.fromEntries(filterKinds.map((kind) => [kind, make(kind)])) as Record<FilterKind, Prepared>

/** The last two parameters are the places behind which to read: chains and sequences. */
const entriesAfter = each((kind) => {
  const { text, more } = runs(kind, ' AND sequence > place.behind', 'ASC')
  const places = `SELECT chain.chain, coalesce(given.sequence, 0) AS behind FROM chain
    LEFT JOIN unnest($${more}::text[], $${more + 1}::bigint[]) AS given (chain, sequence) ON given.chain = chain.chain`
  return { name: `journal-after-${kind}`, text: read(places, text) }
})

const lastEntries = each((kind) => ({
  name: `journal-last-${kind}`,
  text: read('SELECT chain FROM chain', runs(kind, '', 'DESC').text),
}))
