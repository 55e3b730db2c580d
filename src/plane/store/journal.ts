// The writing end of the journal. A group of commits appends its entries, then signs the newest of them, all inside the
// group's transaction.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { sortableId, type Random } from '#platform/random.ts'
import type { Database } from '#platform/sqlite.ts'
import { extendChain, headSignature, newBase, tailAt, tailAtBase, type Tail } from './chain-tail.ts'
import { cursorOf } from './journal-cursor.ts'
import { hexOf } from './journal-chain.ts'
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

export const openJournal = (deps: JournalDeps, database: Database): Journal => {
  const table = openJournalTable(database)
  let tail = loadTail(deps, table)

  const startChain = (): Tail => {
    const base = newBase(deps.signer, sortableId(deps.clock.nowMs(), deps.random), deps.domainName())
    table.insertBase(base)
    return tailAtBase(base)
  }

  const startGroup = (): JournalGroup => {
    const before = tail
    let now = tail
    return {
      append(drafts) {
        const commit = sortableId(deps.clock.nowMs(), deps.random)
        const extended = extendChain(now ?? startChain(), drafts, { domain: deps.domainName(), commit })
        now = extended.tail
        return extended.placed.map(({ entry, bytes, hash }) => {
          table.append(entry, bytes, hash)
          return { cursor: cursorOf(entry.chain, entry.sequence), entry, bytes, hash: hexOf(hash) }
        })
      },
      signHead() {
        if (now === null || now === before) return
        table.sign(now.place.sequence, headSignature(deps.signer, now), deps.signer.keyId)
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
  const place = newest === null ? base : { chain, sequence: newest.sequence, hash: newest.hash }
  return tailAt(deps, place, newest)
}
