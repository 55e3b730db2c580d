// What this process knows of the journal: the newest place of every chain that it has read or written, and whether the
// store has turned out to lack one of them. Every chain only grows, so a chain that is shorter than a known place, or has
// another hash there, has lost commits: the store was set back under this process, or was when it started.
//
// A loss is never withdrawn by what the store holds later, since a chain that lost entries grows back to its old length
// with others. Only an operator's confirmation, which raises the lineage, ends it; or a start on a store that holds the
// very entries again (keep-witness.ts).

import type { Loss } from '#domain/continuity/continuity.ts'
import { permittedInDoubt } from '#domain/continuity/doubtful-writes.ts'
import type { SeenHead } from '#domain/continuity/sighting.ts'
import type { EncodedDraft } from './journal-chain.ts'
import { StoreInDoubt } from '#plane/store/contract/store-errors.ts'

export type JournalWitness = {
  /** The newest known place of every chain. While there is a loss: as they were when it was noticed. */
  places(): readonly SeenHead[]
  /** Committed there for certain: acknowledged to this process, or read by it. A commit with an unknown outcome is neither. */
  learn(place: SeenHead): void
  /** How often operators have confirmed a store that had lost commits, as far as this process knows. */
  lineage(): number
  /** Null: the store holds everything this process knows of. */
  loss(): Loss | null
  /** The first loss stays until it is confirmed. `known`: what was known before, where that is not what was learned here. */
  lose(loss: Omit<Loss, 'lineage'> & { readonly lineage?: number }, known?: readonly SeenHead[]): void
  /** An operator has confirmed the store as it is under this lineage. Ends a loss found under an earlier one. */
  confirmed(lineage: number): void
  /**
   * An operator confirmed the store under this later lineage before this process noticed what was lost. The known places
   * belong to an earlier lineage and are forgotten.
   */
  startOver(lineage: number): void
  /** Called in the turn of a loss, and with null when it ends and after `startOver`. */
  onLoss(run: (loss: Loss | null) => void): void
}

export const openJournalWitness = (): JournalWitness => {
  const listeners: ((loss: Loss | null) => void)[] = []
  let places = new Map<string, SeenHead>()
  /** As they were when the loss was noticed. */
  let evidence: readonly SeenHead[] | null = null
  let lineage = 0
  let loss: Loss | null = null

  const tell = (): void => listeners.forEach((run) => run(loss))

  return {
    places: () => evidence ?? [...places.values()],
    learn(place) {
      const known = places.get(place.chain)
      if (known === undefined || place.sequence > known.sequence) places.set(place.chain, place)
    },
    lineage: () => lineage,
    loss: () => loss,
    lose(found, known) {
      if (loss !== null) return
      loss = { ...found, lineage: Math.max(lineage, found.lineage ?? 0) }
      evidence = known ?? [...places.values()]
      if (known === undefined) places = new Map()
      tell()
    },
    confirmed(now) {
      if (now <= lineage && loss === null) return
      lineage = Math.max(lineage, now)
      if (loss === null || now <= loss.lineage) return
      loss = null
      evidence = null
      tell()
    },
    startOver(now) {
      if (now <= lineage) return
      lineage = now
      places = new Map()
      if (loss === null || loss.lineage < now) {
        loss = null
        evidence = null
      }
      tell()
    },
    onLoss: (run) => void listeners.push(run),
  }
}

/** A known place, and what the store has there. */
export type FoundPlace = {
  readonly known: SeenHead
  /** The sequence behind which the chain begins in this store; null: there is no such chain here. */
  readonly base: number | null
  readonly end: number | null
  /** Of the entry at the known place (hex); null: there is none. */
  readonly hash: string | null
}

/** The first place that the store lacks. What was pruned from the front of a chain is not lost. */
export const lossAmong = (found: readonly FoundPlace[]): Omit<Loss, 'lineage'> | null => {
  for (const { known, base, end, hash } of found) {
    const { chain, sequence } = known
    if (base !== null && sequence <= base) continue
    if (base === null || end === null || end < sequence || hash === null)
      return { why: 'missing', chain, sequence, hash: known.hash, ours: base === null ? null : end }
    if (hash !== known.hash) return { why: 'other', chain, sequence, hash: known.hash, ours: end }
  }
  return null
}

export const lossInWords = ({ why, chain, sequence, ours, lineage }: Loss): string => {
  const next = 'nothing is admitted or changed until an operator confirms it: muster store confirm'
  if (why === 'lineage') return `the store has lost commits: it was confirmed before (lineage ${lineage}); ${next}`
  const lost =
    why === 'other'
      ? `entry ${sequence} of chain ${chain} is not the one this plane knows`
      : `this plane knows entry ${sequence} of chain ${chain}, and ${ours === null ? 'the chain is not there' : `it ends at ${ours}`}`
  return `the store has lost commits: ${lost}; ${next}`
}

/** Null: a commit with these entries may be made. */
export const refusedInDoubt = (
  { loss }: Pick<JournalWitness, 'loss'>,
  entries: readonly EncodedDraft[],
): StoreInDoubt | null => {
  const found = loss()
  if (found === null || permittedInDoubt(entries.map(({ draft }) => draft))) return null
  return new StoreInDoubt(lossInWords(found))
}
