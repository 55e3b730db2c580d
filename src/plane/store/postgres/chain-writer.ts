// The end of this replica's own chain. The replica takes over a chain that no replica with a lease writes, or begins a new one; no
// other replica writes it from then on, so it has no gaps, and no other writer ever waits for it.

import type { Log } from '#platform/log.ts'
import type { PgConnection, Prepared } from '#platform/postgres.ts'
import { sortableId } from '#platform/random.ts'
import { sameBytes } from '#platform/bytes.ts'
import { newBase, tailAt, tailAtBase, type Tail } from '#plane/store/journal/chain-tail.ts'
import type { BaseRow } from '#plane/store/journal/journal-chain.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'
import type { HeadSigner, JournalAuthor, StoreCore } from '#plane/store/contract/store.ts'
import { lockKey } from './group-needs.ts'
import type { FoundChain } from './lock-rows.ts'

/** A chain as its row was found, and where entries are added to it. */
export type OwnChain = {
  readonly writer: ReplicaNumber
  /** Null: it is new, and has no row yet. */
  readonly row: { readonly sequence: number; readonly hash: Uint8Array; readonly writer: ReplicaNumber | null } | null
  readonly base: BaseRow | null
  readonly tail: Tail
}

export type ChainFacts = {
  /** What this replica wrote last. */
  readonly known: OwnChain | null
  readonly chains: readonly FoundChain[]
  /** The store has lost commits. A chain that was cut short is not taken over: that would put two signed entries in one place. */
  readonly afresh: boolean
}

/** Inside the transaction that is going to write it. */
export const ownChain = async (
  core: Pick<StoreCore, 'clock' | 'random' | 'log'>,
  author: JournalAuthor,
  connection: PgConnection,
  self: ReplicaNumber,
  { known, chains, afresh }: ChainFacts,
): Promise<OwnChain> => {
  if (known !== null && known.writer === self && isUnchanged(known, chains)) return known
  const free = afresh ? null : await takeOver(core.log, author.signer, connection, self)
  return free ?? begin(core, author, connection, self)
}

const isUnchanged = ({ row, writer, tail }: OwnChain, chains: readonly FoundChain[]): boolean => {
  const now = chains.find(({ chain }) => chain === tail.place.chain)
  return now !== undefined && now.writer === writer && now.sequence === row?.sequence && sameBytes(now.hash, row.hash)
}

const takeOver = async (
  log: Log,
  signer: HeadSigner,
  connection: PgConnection,
  self: ReplicaNumber,
): Promise<OwnChain | null> => {
  const { rows } = await connection.run(findFree, [self])
  for (const { chain, writer } of rows as readonly { chain: string; writer: ReplicaNumber | null }[]) {
    // One that another replica is just taking, or that its late writer is about to change, is passed over.
    const [found] = (await connection.run(lockFree, [chain, writer])).rows
    if (found === undefined) continue
    const sequence = found['sequence'] as number
    const [newest] = (await connection.run(readNewest, [chain])).rows
    const end = newest ?? { sequence: found['base_sequence'], hash: found['base_hash'] }
    const place = { chain, sequence: end['sequence'] as number, hash: end['hash'] as Uint8Array }
    // If the row and the newest entry differ, the chain was changed by another writer.
    const signed =
      newest === undefined || newest['sequence'] !== sequence
        ? null
        : { signature: newest['signature'] as Uint8Array | null, keyId: newest['key_id'] as string | null }
    return {
      writer: self,
      row: { sequence, hash: found['hash'] as Uint8Array, writer },
      base: null,
      tail: tailAt(log, signer, place, signed),
    }
  }
  return null
}

const begin = async (
  { clock, random }: Pick<StoreCore, 'clock' | 'random'>,
  author: JournalAuthor,
  connection: PgConnection,
  self: ReplicaNumber,
): Promise<OwnChain> => {
  const chain = sortableId(clock.nowMs(), random)
  const base = newBase(author.signer, chain, author.domainName())
  // A connection that looks up the outcome of this transaction waits here until it has ended.
  await connection.run(lockNewChain, [lockKey('chain', chain)])
  return { writer: self, row: null, base, tail: tailAtBase(base) }
}

/** A new chain: no replica has to lose a lease first. */
export const releaseChain: Prepared = {
  name: 'chain-release',
  text: 'UPDATE chain SET writer = NULL WHERE chain = $1 AND writer = $2',
}

export const lockNewChain: Prepared = { name: 'chain-lock-new', text: 'SELECT pg_advisory_xact_lock($1)' }

const findFree: Prepared = {
  name: 'chain-find-free',
  text: `SELECT chain, writer FROM chain
    WHERE writer IS NULL OR writer = $1
      OR NOT EXISTS (SELECT FROM replica WHERE replica.number = writer AND expires_at > clock_timestamp())
    ORDER BY writer = $1 DESC NULLS LAST, chain`,
}

const lockFree: Prepared = {
  name: 'chain-lock-free',
  text: `SELECT sequence, hash, base_sequence, base_hash FROM chain
    WHERE chain = $1 AND writer IS NOT DISTINCT FROM $2 FOR UPDATE SKIP LOCKED`,
}

const readNewest: Prepared = {
  name: 'chain-read-newest',
  text: 'SELECT sequence, hash, signature, key_id FROM journal WHERE chain = $1 ORDER BY sequence DESC LIMIT 1',
}
