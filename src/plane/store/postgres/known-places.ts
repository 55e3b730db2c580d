// The places this replica knows, compared with what the database has. Asked inside every group's transaction before it
// commits, and by the feed. One index lookup a chain, and there are as many chains as there were replicas at once.

import type { SeenHead } from '#domain/continuity/sighting.ts'
import type { PgResult, PgValue, Prepared } from '#platform/postgres.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import type { FoundPlace } from '#plane/store/journal/journal-witness.ts'

type Run = (statement: Prepared, values: readonly PgValue[]) => Promise<PgResult>

export const findPlaces = async (run: Run, known: readonly SeenHead[]): Promise<readonly FoundPlace[]> => {
  if (known.length === 0) return []
  const byChain = new Map(known.map((place) => [place.chain, place]))
  const values = [known.map(({ chain }) => chain), known.map(({ sequence }) => sequence)]
  const { rows } = await run(placesStatement, values)
  return rows.map((row) => {
    const hash = row['hash'] as Uint8Array | null
    return {
      known: byChain.get(row['chain'] as string) as SeenHead,
      base: row['base'] as number | null,
      end: row['end'] as number | null,
      hash: hash === null ? null : hexOf(hash),
    }
  })
}

/** The row of the chain and its entry, both: either of them may be what was set back. */
const placesStatement: Prepared = {
  name: 'known-places',
  text: `SELECT known.chain, chain.base_sequence AS base, chain.sequence AS end,
      CASE WHEN chain.sequence = known.sequence AND chain.hash <> journal.hash THEN chain.hash ELSE journal.hash END AS hash
    FROM unnest($1::text[], $2::bigint[]) AS known (chain, sequence)
    LEFT JOIN chain ON chain.chain = known.chain
    LEFT JOIN journal ON journal.chain = known.chain AND journal.sequence = known.sequence`,
}
