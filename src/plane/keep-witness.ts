// The plane's own memory of the journal, tied to its data folder: compared with the store at a start, before anything is
// written, and kept up to date from then on.

import { findingOf, type Finding } from '#domain/continuity.ts'
import type { Log } from '#platform/log.ts'
import type { Timers } from '#platform/timers.ts'
import { lossInWords, type JournalWitness } from './store/journal-witness.ts'
import { placesIn } from './store/places-in-journal.ts'
import type { JournalReader, Store } from './store/store.ts'
import { openWitnessFiles, type KeptDoubt } from './store/witness-files.ts'

export type KeepWitnessDeps = {
  readonly store: Pick<Store, 'get' | 'journal'>
  readonly witness: JournalWitness
  readonly timers: Timers
  readonly log: Log
  /** Asked at each write: a new domain gets its name after this. */
  domainName(): string
  /** The number of this process where several share the data folder. */
  readonly replica: number | null
}

const keptEveryMs = 1000

/**
 * The store may have lost commits while no plane ran: an older file put back, a tail cut off, a chain deleted. Returns what
 * ends the keeping, with a last write.
 */
export const keepWitness = async (deps: KeepWitnessDeps, folder: string): Promise<() => void> => {
  const { store, witness, log } = deps
  const files = openWitnessFiles(folder, log, deps.replica)
  const domain = (await store.get('domain', 'domain'))?.value ?? null

  if (domain !== null) {
    const { lineage } = domain.continuity
    witness.confirmed(lineage)
    const kept = files.heads()
    const heads = kept !== null && kept.domain === domain.name && kept.lineage >= lineage ? kept.heads : []
    if (kept !== null && heads.length > 0) {
      const places = await placesIn(store.journal, heads, await store.journal.heads())
      const finding = findingOf(kept, lineage, places)
      if (finding !== null) witness.lose(finding, heads)
    }
    const doubt = files.doubt()
    if (doubt !== null && doubt.domain === domain.name) {
      if (doubt.lineage < lineage) files.dropDoubt()
      else witness.lose(findingIn(doubt), heads)
    }
  }
  const keepDoubt = (loss: Finding): void => {
    log.error({ ...loss }, lossInWords(loss))
    files.keepDoubt({ ...loss, domain: deps.domainName() })
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
    files.keepHeads({ domain: deps.domainName(), lineage, heads })
  }
  const stop = deps.timers.every(keptEveryMs, keepHeads)
  return () => {
    stop()
    keepHeads()
  }
}

const findingIn = ({ domain: _domain, ...finding }: KeptDoubt): Finding => finding

/**
 * A tail that was cut back to a signed head, and a chain that was deleted whole, verify as intact by themselves: only what
 * was known before can tell.
 */
export const verifiedAgainst = (witness: Pick<JournalWitness, 'places'>, journal: JournalReader): JournalReader => ({
  ...journal,
  verify: ({ known = [], ...options } = {}) => journal.verify({ ...options, known: [...known, ...witness.places()] }),
})
