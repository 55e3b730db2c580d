// The plane's own memory of the journal, tied to its data folder: compared with the store at a start, before anything is
// written, and kept up to date from then on.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { takenAway, lossOf, type Continuity, type Loss } from '#domain/continuity/continuity.ts'
import { lossInWords, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { placesIn } from '#plane/store/journal/places-in-journal.ts'
import type { JournalReader } from '#plane/store/contract/store.ts'
import { asideName, openWitnessFiles, type KeptDoubt } from '#plane/store/journal/witness-files.ts'
import type { Core } from '#plane/core/core.ts'

type WitnessBase = Pick<Core, 'store' | 'timers' | 'log'> & { readonly witness: JournalWitness }

/** Whose memory it is. */
export type WitnessOwner = {
  /** Asked at each write: a new domain gets its name, and its root, after this. */
  readonly domainName: () => string
  readonly domainRoot: () => string | null
  /** The number of this process where several share the data folder. */
  readonly replica: number | null
}

/** The newer store is there again after a doubt. */
export type PutBack = {
  /** What was revoked meanwhile, in words; null: it was not recorded. */
  readonly meanwhile: readonly string[] | null
  /** What the record of the doubt is called once it is set aside. */
  nameAside(nowMs: number): string
  setAside(nowMs: number): void
}

export type WitnessKeeping = {
  /** Ends the keeping, with a last write. */
  stop(): void
  /** Of every commit: what is taken away while the store is in doubt is kept beside it. */
  note(entries: readonly JournalEntry[]): void
  /** The store holds again what it had lost; null: it had lost nothing, or still lacks it. */
  readonly putBack: PutBack | null
}

const keptEveryMs = 1000
/** Kept of what was revoked meanwhile. */
const mostMeanwhile = 1000

/**
 * The store may have lost commits while no plane ran: an older file put back, a tail cut off, a chain deleted.
 */
export const keepWitness = async (
  { store, timers, log, witness }: WitnessBase,
  { domainName, domainRoot, replica }: WitnessOwner,
  folder: string,
): Promise<WitnessKeeping> => {
  const files = openWitnessFiles(folder, log, replica)
  const domain = (await store.get('domain', 'domain'))?.value ?? null
  let meanwhile: readonly string[] = []
  let putBack: PutBack | null = null

  if (domain !== null) {
    const { lineage } = domain.continuity
    witness.confirmed(lineage)
    const roots = (await store.issuers()).map(({ value }) => value.id)
    const kept = files.heads()
    const isOurs = kept !== null && kept.domain === domain.name && (kept.root === null || roots.includes(kept.root))
    const heads = isOurs && kept.lineage >= lineage ? kept.heads : []
    const places = heads.length === 0 ? [] : await placesIn(store.journal, heads, await store.journal.heads())
    const loss = kept === null ? null : lossOf(kept, lineage, places)
    if (loss !== null) witness.lose(loss, heads)
    const doubt = files.doubt()
    if (doubt !== null && doubt.domain === domain.name) {
      if (doubt.lineage < lineage) files.dropDoubt()
      else if (heads.length > 0 && loss === null && (await isBack(store.journal, doubt, domain.continuity)))
        putBack = {
          meanwhile: doubt.meanwhile ?? null,
          nameAside: asideName,
          setAside: (nowMs) => files.setDoubtAside(nowMs),
        }
      else {
        meanwhile = doubt.meanwhile ?? []
        witness.lose(lossIn(doubt), heads)
      }
    }
  }
  const keepDoubt = (loss: Loss): void => {
    log.error({ ...loss }, lossInWords(loss))
    files.keepDoubt({ ...loss, domain: domainName(), meanwhile })
  }
  const found = witness.loss()
  if (found !== null) keepDoubt(found)
  witness.onLoss((loss) => (loss === null ? files.dropDoubt() : keepDoubt(loss)))

  let written = ''
  const keepHeads = (): void => {
    const heads = witness.places()
    // After a loss the file keeps what was known before it.
    if (witness.loss() !== null || heads.length === 0) return
    const lineage = witness.lineage()
    const now = JSON.stringify([lineage, heads])
    if (now === written) return
    written = now
    files.keepHeads({ domain: domainName(), root: domainRoot(), lineage, heads })
  }
  const stop = timers.every(keptEveryMs, keepHeads)
  return {
    stop() {
      stop()
      keepHeads()
    },
    note(entries) {
      const loss = witness.loss()
      const taken = loss === null ? [] : takenAway(entries)
      if (loss === null || taken.length === 0) return
      meanwhile = [...new Set([...meanwhile, ...taken])].slice(-mostMeanwhile)
      files.keepDoubt({ ...loss, domain: domainName(), meanwhile })
    },
    putBack,
  }
}

/**
 * Whether the store holds again what it had lost, by the hash of the very entry: a chain that grew back to its old length
 * has another one there. A store with a doubt is one that was written while it lacked the commits. Only asked at a
 * start: what happened to a store under a running plane is not undone by a second change.
 */
const isBack = async (journal: Pick<JournalReader, 'hashAt'>, doubt: KeptDoubt, now: Continuity): Promise<boolean> =>
  now.doubt === null &&
  doubt.lineage === now.lineage &&
  doubt.hash !== undefined &&
  (await journal.hashAt(doubt.chain, doubt.sequence)) === doubt.hash

const lossIn = ({ domain: _domain, meanwhile: _meanwhile, ...loss }: KeptDoubt): Loss => loss

/**
 * A tail that was cut back to a signed head, and a chain that was deleted whole, verify as intact: only earlier knowledge shows
 * the loss.
 */
export const verifiedAgainst = (witness: Pick<JournalWitness, 'places'>, journal: JournalReader): JournalReader => ({
  ...journal,
  verify: ({ known = [], ...options } = {}) => journal.verify({ ...options, known: [...known, ...witness.places()] }),
})
