// A COMMIT that was sent and not answered as it should be: its connection broke, it took too long, or the server warned
// that no standby has it. Whether it was carried out is looked up, once no backend can carry it out any more, and the look-up ends
// with a synchronous write: what it has seen is then as durable as that.

import type { Prepared } from '#platform/postgres.ts'
import type { Timers } from '#platform/timers.ts'
import { sameBytes } from '#platform/bytes.ts'
import { answeredInTime } from './answered-in-time.ts'
import { lockNewChain } from './chain-writer.ts'
import { lockKey } from './group-needs.ts'
import type { Judgeable } from './judge-group.ts'
import type { CommitMade, Writer, Written } from './run-transaction.ts'

export type Unsettled = {
  readonly of: readonly Judgeable[]
  readonly chain: string
  /** Whether the transaction was to make the row of the chain. */
  readonly isNew: boolean
  /** Of its last entry. */
  readonly operation: string
  readonly hash: Uint8Array
  /** What it is, if it was committed. */
  readonly made: CommitMade
}

export const unsettledCommit = (of: readonly Judgeable[], made: CommitMade, { chain, isNew }: Written): Unsettled => {
  const { place } = chain.tail
  const last = made.outcomes.findLast((outcome) => typeof outcome !== 'string')
  const operation = last?.entries.at(-1)?.entry.operation
  if (operation === undefined) throw new Error('a transaction that wrote no entry')
  return { of, chain: place.chain, isNew, operation, hash: place.hash, made }
}

/** The longest time that the server allows an idle transaction. */
const withinMs = 7000

/** Rejects when it cannot be found out now: then it is asked again before anything else is written. */
export const settleCommit = async (
  timers: Timers,
  { connection, warnings }: Writer,
  { chain, isNew, operation, hash }: Unsettled,
): Promise<'committed' | 'not-committed'> => {
  const asked = Promise.all([
    connection.exec('BEGIN'),
    // The old transaction holds the row of its chain to its end, and where it made that row, this lock.
    isNew ? connection.run(lockNewChain, [lockKey('chain', chain)]) : null,
    connection.run(lockChain, [chain]),
    connection.run(findOperation, [operation]),
    connection.run(markSettled, [chain]),
  ])
  const [, , , found, marked] = await answeredInTime(timers, connection, withinMs, asked)
  warnings.splice(0)
  await answeredInTime(timers, connection, withinMs, connection.exec('COMMIT'))
  if (warnings.length > 0) throw new Error(`the look-up itself is in doubt: ${warnings.join('; ')}`)
  const [row] = found.rows
  const committed = row !== undefined && row['chain'] === chain && sameBytes(row['hash'] as Uint8Array, hash)
  if (committed && marked.count !== 1) throw new Error('the chain of a committed entry has no row')
  return committed ? 'committed' : 'not-committed'
}

const lockChain: Prepared = { name: 'settle-lock-chain', text: 'SELECT chain FROM chain WHERE chain = $1 FOR UPDATE' }
const findOperation: Prepared = {
  name: 'settle-find-operation',
  text: 'SELECT chain, hash FROM journal WHERE operation = $1',
}
const markSettled: Prepared = {
  name: 'settle-mark',
  text: 'UPDATE chain SET settled = settled + 1 WHERE chain = $1',
}
