// The writing end of the journal. A group of commits appends its entries, then signs the newest of them, all inside the
// group's transaction.

import type { SeenHead } from '#domain/continuity/sighting.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { Log } from '#platform/log.ts'
import { sortableId } from '#platform/random.ts'
import type { Database } from '#platform/sqlite.ts'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { extendChain, headSignature, newBase, tailAt, tailAtBase, type Tail } from '#plane/store/journal/chain-tail.ts'
import { cursorAt } from '#plane/store/journal/journal-cursor.ts'
import { hexOf, type BaseRow, type ChainPlace, type EncodedDraft } from '#plane/store/journal/journal-chain.ts'
import type { JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { StoreInDoubt, StoreRefused } from '#plane/store/contract/store-errors.ts'
import type { HeadSigner, JournalAuthor, StoreCore, StoredEntry } from '#plane/store/contract/store.ts'

export type Journal = {
  /** The newest committed place of the chain that is written; null on an empty journal. */
  head(): ChainPlace | null
  /**
   * Called inside a transaction; nothing of it counts before `committed`. Throws StoreInDoubt where the journal does not
   * end where this process left it: another file was put in its place, or its end was cut off.
   */
  startGroup(): JournalGroup
}

export type JournalGroup = {
  append(drafts: readonly EncodedDraft[]): readonly StoredEntry[]
  signHead(): void
  committed(): void
}

export const openJournal = (
  { clock, random, log }: Pick<StoreCore, 'clock' | 'random' | 'log'>,
  author: JournalAuthor,
  witness: JournalWitness,
  database: Database,
): Journal => {
  const { signer } = author
  const table = openJournalTable(database)
  const closed = table.closed()
  let tail = loadTail(log, signer, table)
  if (tail !== null && tail.place.sequence > (table.base()?.sequence ?? 0)) witness.learn(seenAt(tail))

  const startChain = (): Tail => {
    const base = newBase(signer, sortableId(clock.nowMs(), random), author.domainName())
    table.insertBase(base)
    return tailAtBase(base)
  }

  const checkEnd = (): void => {
    // It continues where the file ends: what may be written now has to be written somewhere.
    if (witness.loss() !== null) return void (tail = loadTail(log, signer, table))
    if (tail === null) return
    const { chain, sequence } = tail.place
    const end = table.newest() ?? table.base()
    if (end !== null && end.sequence === sequence && sameBytes(end.hash, tail.place.hash)) return
    const why = end !== null && end.sequence >= sequence ? 'other' : 'missing'
    witness.lose({ why, chain, sequence, hash: hexOf(tail.place.hash), ours: end?.sequence ?? null })
    throw new StoreInDoubt(`the journal does not end at entry ${sequence}, where this plane left it`)
  }

  const startGroup = (): JournalGroup => {
    checkEnd()
    const before = tail
    let now = tail
    return {
      append(drafts) {
        const commit = sortableId(clock.nowMs(), random)
        const extended = extendChain(now ?? startChain(), drafts, { domain: author.domainName(), commit })
        now = extended.tail
        const places = new Map(closed)
        return extended.placed.map(({ entry, bytes, hash }) => {
          table.append(entry, bytes, hash)
          return { cursor: cursorAt(places.set(entry.chain, entry.sequence)), entry, bytes, hash: hexOf(hash) }
        })
      },
      signHead() {
        if (now === null || now === before) return
        table.sign(now.place.sequence, headSignature(signer, now), signer.keyId)
      },
      committed() {
        tail = now
        if (now !== null && now !== before) witness.learn(seenAt(now))
      },
    }
  }

  return { head: () => tail?.place ?? null, startGroup }
}

const seenAt = ({ place: { chain, sequence, hash } }: Tail): SeenHead => ({ chain, sequence, hash: hexOf(hash) })

const loadTail = (log: Log, signer: HeadSigner, table: JournalTable): Tail | null => {
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
  return tailAt(log, signer, place, newest)
}

/** The chain that is written. */
type JournalTable = ReturnType<typeof openJournalTable>

type NewestRow = Omit<ChainPlace, 'chain'> & { readonly signature: Uint8Array | null; readonly keyId: string | null }

const openJournalTable = (database: Database) => {
  const base = database.prepare(
    'SELECT chain, domain, sequence, hash, signature, key_id AS keyId FROM journal_base WHERE id = 1',
  )
  const insertBase = database.prepare('INSERT INTO journal_base VALUES (1, ?, ?, ?, ?, ?, ?)')
  const append = database.prepare(
    'INSERT INTO journal (sequence, operation, bytes, hash, node, type) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const sign = database.prepare('UPDATE journal SET signature = ?, key_id = ? WHERE sequence = ?')
  const newest = database.prepare(
    'SELECT sequence, hash, signature, key_id AS keyId FROM journal ORDER BY sequence DESC LIMIT 1',
  )
  const closed = database.prepare('SELECT chain, sequence FROM closed_chain')
  return {
    base: () => (base.get() as BaseRow | undefined) ?? null,
    insertBase: (row: BaseRow) =>
      void insertBase.run(row.chain, row.domain, row.sequence, row.hash, row.signature, row.keyId),
    append: (entry: JournalEntry, bytes: string, hash: Uint8Array) =>
      void append.run(entry.sequence, entry.operation, bytes, hash, entry.node, entry.type),
    sign: (sequence: number, signature: Uint8Array, keyId: string) => void sign.run(signature, keyId, sequence),
    newest: () => (newest.get() as NewestRow | undefined) ?? null,
    /** The ends of closed chains. */
    closed: (): ReadonlyMap<string, number> =>
      new Map(closed.all().map((row) => [row['chain'] as string, row['sequence'] as number])),
  }
}
