// Heads that were seen somewhere, compared with what this journal has at those places.

import type { Place } from '#domain/continuity/continuity.ts'
import type { SeenHead } from '#domain/continuity/sighting.ts'
import type { JournalReader } from '#plane/store/contract/store.ts'

export const placesIn = async (
  journal: Pick<JournalReader, 'hashAt'>,
  heads: readonly SeenHead[],
  /** The ends of this journal, read before: what is written meanwhile must not look as if it had been pruned. */
  ends: readonly SeenHead[],
): Promise<readonly Place[]> => {
  const newest = new Map(ends.map(({ chain, sequence }) => [chain, sequence]))
  return Promise.all(
    heads.map(async (head) => ({
      head,
      hash: await journal.hashAt(head.chain, head.sequence),
      newest: newest.get(head.chain) ?? null,
    })),
  )
}
