// The writing end of the journal. A group of commits appends its entries, then signs the newest of them, all inside the
// group's transaction.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { sortableId, type Random } from '#platform/random.ts'
import type { Database } from '#platform/sqlite.ts'
import { cursorOf } from './journal-cursor.ts'
import { chainedHash, entryBytes, genesisHash, hexOf, placeEntry, scarredHash, signedBytes } from './journal-chain.ts'
import type { ChainPlace, EncodedDraft } from './journal-chain.ts'
import { openJournalTable, type JournalTable } from './journal-table.ts'
import { StoreRefused } from './store-errors.ts'
import type { HeadSigner, StoredEntry } from './store.ts'

export type JournalDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly signer: HeadSigner
  readonly log: Log
  domainName(): string
}

export type Journal = {
  readonly table: JournalTable
  /** The newest committed place; null on an empty journal. */
  head(): ChainPlace | null
  /** Called inside a transaction; nothing of it counts before `committed`. */
  startGroup(): JournalGroup
}

export type JournalGroup = {
  append(drafts: readonly EncodedDraft[]): readonly StoredEntry[]
  signHead(): void
  committed(): void
}

/** `chainTo` is the hash of `place`, but for a scar. */
type Tail = { readonly place: ChainPlace; readonly chainTo: Uint8Array }

export const openJournal = (deps: JournalDeps, database: Database): Journal => {
  const table = openJournalTable(database)
  let tail = loadTail(deps, table)

  const startChain = (): Tail => {
    const chain = sortableId(deps.clock.nowMs(), deps.random)
    const place = { chain, sequence: 0, hash: genesisHash(chain, deps.domainName()) }
    const signature = deps.signer.sign(signedBytes('base', place, deps.signer.keyId))
    table.insertBase({ ...place, domain: deps.domainName(), signature, keyId: deps.signer.keyId })
    return { place, chainTo: place.hash }
  }

  const startGroup = (): JournalGroup => {
    const before = tail
    let now = tail
    return {
      append(drafts) {
        const commit = sortableId(deps.clock.nowMs(), deps.random)
        const domain = deps.domainName()
        return drafts.map(({ draft, body }, index) => {
          const { place, chainTo } = now ?? startChain()
          const { chain } = place
          const sequence = place.sequence + 1
          const entry = placeEntry(draft, { chain, sequence, domain, commit, index })
          const bytes = entryBytes(entry, body)
          const hash = chainedHash(chainTo, bytes)
          table.append(entry, bytes, hash)
          now = { place: { chain, sequence, hash }, chainTo: hash }
          return { cursor: cursorOf(chain, sequence), entry, bytes, hash: hexOf(hash) }
        })
      },
      signHead() {
        if (now === null || now === before) return
        const { keyId } = deps.signer
        table.sign(now.place.sequence, deps.signer.sign(signedBytes('head', now.place, keyId)), keyId)
      },
      committed() {
        tail = now
      },
    }
  }

  return { table, head: () => tail?.place ?? null, startGroup }
}

const loadTail = (deps: JournalDeps, table: JournalTable): Tail | null => {
  const newest = table.newest()
  const base = table.base()
  if (newest === null && base === null) return null
  if (base === null)
    throw new StoreRefused(
      'JOURNAL_UNREADABLE',
      'the journal has entries, but not the record of where it begins',
      'Keep a copy of the data folder as evidence and restore the last good copy',
    )
  const { chain } = base
  // Every group commits its entry and signed head together, so an unsigned end was not left by us.
  if (newest === null) return scarred(deps, base)
  const place = { chain, sequence: newest.sequence, hash: newest.hash }
  const { signature, keyId } = newest
  const proven =
    signature !== null && keyId !== null && deps.signer.verify(signedBytes('head', place, keyId), signature)
  return proven ? { place, chainTo: place.hash } : scarred(deps, place)
}

const scarred = (deps: JournalDeps, { chain, sequence, hash }: ChainPlace): Tail => {
  deps.log.error({ sequence }, 'the end of the journal carries no signature of ours; see: muster journal verify')
  return { place: { chain, sequence, hash }, chainTo: scarredHash(hash) }
}
