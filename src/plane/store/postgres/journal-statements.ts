// How the journal is read: of every chain a run of entries, found by an index, all in one statement and so at one moment.

import type { Prepared } from '#platform/postgres.ts'

const filters = ['all', 'node', 'type', 'both'] as const
/** By node, by types, by both, or not at all: a condition that may be switched off keeps the planner from its indexes. */
export type JournalFilter = (typeof filters)[number]

/** Parameters: the limit, then the node, then the types, as far as they are filtered by; `more` is the next one. */
const runs = (filter: JournalFilter, from: string, order: string): { readonly text: string; readonly more: number } => {
  const select = (where: string): string =>
    `SELECT sequence, operation, bytes, hash FROM journal
       WHERE journal.chain = place.chain${from}${where} ORDER BY sequence ${order} LIMIT $1`
  switch (filter) {
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

/** Every chain comes at least once, with nulls where there is nothing to read. */
const read = (places: string, run: string): string =>
  `SELECT place.chain, entry.* FROM (${places}) AS place LEFT JOIN LATERAL (${run}) AS entry ON true`

const each = (make: (filter: JournalFilter) => Prepared): Readonly<Record<JournalFilter, Prepared>> =>
  Object.fromEntries(filters.map((filter) => [filter, make(filter)])) as Record<JournalFilter, Prepared>

/** The last two parameters are the places behind which to read: chains and sequences. */
export const entriesAfter = each((filter) => {
  const { text, more } = runs(filter, ' AND sequence > place.behind', 'ASC')
  const places = `SELECT chain.chain, coalesce(given.sequence, 0) AS behind FROM chain
    LEFT JOIN unnest($${more}::text[], $${more + 1}::bigint[]) AS given (chain, sequence) ON given.chain = chain.chain`
  return { name: `journal-after-${filter}`, text: read(places, text) }
})

export const lastEntries = each((filter) => ({
  name: `journal-last-${filter}`,
  text: read('SELECT chain FROM chain', runs(filter, '', 'DESC').text),
}))

export const newestSigned: Prepared = {
  name: 'journal-heads',
  text: `SELECT chain.chain, head.* FROM chain CROSS JOIN LATERAL (
      SELECT sequence, hash, signature, key_id FROM journal
      WHERE journal.chain = chain.chain AND signature IS NOT NULL ORDER BY sequence DESC LIMIT 1) AS head
    ORDER BY chain.chain`,
}

export const hashAt: Prepared = {
  name: 'journal-hash-at',
  text: 'SELECT hash FROM journal WHERE chain = $1 AND sequence = $2',
}

/** What the entry at this place is chained to: the entry before it, or the base. */
export const hashBefore: Prepared = {
  name: 'journal-hash-before',
  text: `SELECT hash FROM journal WHERE chain = $1 AND sequence = $2 - 1
    UNION ALL SELECT base_hash FROM chain WHERE chain = $1 AND base_sequence = $2 - 1 LIMIT 1`,
}

export const page: Prepared = {
  name: 'journal-page',
  text: `SELECT sequence, operation, bytes, hash, signature, key_id AS "keyId", node, type FROM journal
    WHERE chain = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`,
}

export const everyChain: Prepared = {
  name: 'journal-chains',
  text: `SELECT chain, domain, base_sequence, base_hash, base_signature, base_key_id, sequence, hash,
      coalesce((SELECT max(sequence) FROM journal WHERE journal.chain = chain.chain), 0) AS newest
    FROM chain ORDER BY chain`,
}

/** Entries of a chain that has no row: from one chain to the next, without reading every entry. */
export const chainsWithoutRow: Prepared = {
  name: 'journal-chains-without-row',
  text: `WITH RECURSIVE found AS (
      (SELECT chain FROM journal ORDER BY chain LIMIT 1)
      UNION ALL
      SELECT (SELECT journal.chain FROM journal WHERE journal.chain > found.chain ORDER BY journal.chain LIMIT 1)
      FROM found WHERE found.chain IS NOT NULL)
    SELECT chain FROM found
    WHERE chain IS NOT NULL AND NOT EXISTS (SELECT FROM chain WHERE chain.chain = found.chain) ORDER BY chain`,
}
