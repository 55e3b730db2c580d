// What a node has seen of the journal: how far each chain of it reached, in the plane's own signed words. Whoever restores
// an older copy of the store brings back a journal that its own nodes have seen further.

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
 * only grows: of two, the later one is as far or further in each of them, and so in their sum.
 */
export const isLater = (next: Sighting, kept: Sighting | null): boolean => {
  if (kept === null) return true
  if (next.lineage !== kept.lineage) return next.lineage > kept.lineage
  return reach(next) > reach(kept)
}

const reach = ({ heads }: Sighting): number => heads.reduce((sum, { sequence }) => sum + sequence, 0)

/** With more chains than fit, those that reach furthest. */
export const sightingOf = (lineage: number, heads: readonly SeenHead[]): Sighting => ({
  lineage,
  heads: heads
    .toSorted((one, other) => other.sequence - one.sequence || (one.chain < other.chain ? -1 : 1))
    .slice(0, mostHeads)
    .map(({ chain, sequence, hash }) => ({ chain, sequence, hash })),
})
