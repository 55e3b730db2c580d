// What a node has seen of the journal: how far each chain reached, signed by the plane. A restored older copy of the store has a
// journal that ends before what its nodes have seen.

export type SeenHead = {
  readonly chain: string
  readonly sequence: number
  /** Hex. */
  readonly hash: string
}

export type Sighting = {
  /** How often operators have confirmed a store that had lost something: what was seen before that is not held against it. */
  readonly lineage: number
  readonly heads: readonly SeenHead[]
}

/** There is a chain for every replica there ever was at once. */
export const mostHeads = 64

/**
 * Whether `next` is worth keeping instead of `kept`. Every sighting is of the whole journal at one moment, and every chain
 * only grows: of two, the later one is as far or further in each of them, and so in their sum. One that is shorter in any
 * chain, or has another entry at the same place, is of a journal that lost something, and never replaces what is kept.
 */
export const isLater = (next: Sighting, kept: Sighting | null): boolean => {
  if (kept === null) return true
  if (next.lineage !== kept.lineage) return next.lineage > kept.lineage
  return reach(next) > reach(kept) && extendsIn(next, kept)
}

const extendsIn = (next: Sighting, kept: Sighting): boolean => {
  const heads = new Map(next.heads.map((head) => [head.chain, head]))
  return kept.heads.every((before) => {
    const now = heads.get(before.chain)
    // With more chains than fit, a chain that was named before may be missing.
    if (now === undefined) return next.heads.length === mostHeads
    return now.sequence === before.sequence ? now.hash === before.hash : now.sequence > before.sequence
  })
}

/** How many earlier sightings are kept beside the newest. */
export const mostEarlier = 8

/**
 * Earlier sightings at growing distances: a replaced one goes into the first position, and every second, fourth, eighth time the
 * one in a position moves on to the next. The journal of a store that has lost commits and grown on holds the newest sighting an
 * agent got since, and not those from before.
 */
export const withEarlier = <T>(slots: readonly (T | null)[], count: number, replaced: T): readonly (T | null)[] =>
  Array.from({ length: mostEarlier }, (_, at) => {
    if (count % 2 ** at !== 0) return slots[at] ?? null
    return at === 0 ? replaced : (slots[at - 1] ?? null)
  })

const reach = ({ heads }: Sighting): number => heads.reduce((sum, { sequence }) => sum + sequence, 0)

/** With more chains than fit, those that reach furthest. */
export const sightingOf = (lineage: number, heads: readonly SeenHead[]): Sighting => ({
  lineage,
  heads: heads
    .toSorted((one, other) => other.sequence - one.sequence || (one.chain < other.chain ? -1 : 1))
    .slice(0, mostHeads)
    .map(({ chain, sequence, hash }) => ({ chain, sequence, hash })),
})
