// Of all replicas one leads: it is named in one row, together with a fencing token that grows whenever another takes over.
// Leading counts only under the lease it was taken with.

import type { PgConnection, Prepared } from '#platform/postgres.ts'
import type { FencingToken, ReplicaNumber } from '#plane/store/contract/replicas.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { answersWithin, type InTime } from './answered-in-time.ts'
import type { Lease, Renewal } from './lease.ts'
import type { ReplicaPace } from './replica-pace.ts'

export type Leadership = {
  current(): FencingToken | null
  /** Called at once where this replica leads already. */
  onChange(run: (fencingToken: FencingToken | null) => void): void
  /** How many had a lease when last looked. */
  replicas(): number
  /** Finds the leader, and leads where there is none. Every renewal of the lease does so as well. */
  look(renewal: Renewal): Promise<void>
}

export const openLeadership = (
  { timers, log }: Pick<StoreCore, 'timers' | 'log'>,
  lease: Pick<Lease, 'self' | 'standing' | 'onStanding' | 'onRenewed'>,
  pace: ReplicaPace,
): Leadership => {
  const inTime = answersWithin(timers, pace.answerWithinMs)
  const listeners: ((fencingToken: FencingToken | null) => void)[] = []
  let held: { readonly fencingToken: FencingToken; readonly by: ReplicaNumber } | null = null
  let replicas = 1
  let looking: Promise<void> | null = null

  const current = (): FencingToken | null =>
    held !== null && held.by === lease.self() && lease.standing().kind === 'serving' ? held.fencingToken : null
  let reported: FencingToken | null = null
  const tell = (): void => {
    const now = current()
    if (now?.number === reported?.number) return
    reported = now
    log.info(
      { fencingToken: now?.number ?? null },
      now === null ? 'this replica no longer leads' : 'this replica leads',
    )
    for (const run of listeners) {
      try {
        run(now)
      } catch (error) {
        log.error({ err: error }, 'a listener of the leadership failed')
      }
    }
  }

  const fencingTokenOf = async (
    seen: Seen,
    connection: PgConnection,
    number: ReplicaNumber,
  ): Promise<number | null> => {
    if (lease.standing().kind === 'skewed') {
      // Kept, it would keep those from leading whose clocks are right.
      if (seen.leader === number) await leave(inTime, connection, number)
      return null
    }
    if (seen.leader === number) return seen.fencingToken
    return seen.led ? null : take(inTime, connection, seen.fencingToken, number)
  }
  const look = async ({ connection, number }: Renewal): Promise<void> => {
    const seen = await seenBy(inTime, connection)
    replicas = Math.max(1, seen.replicas)
    const fencingToken = await fencingTokenOf(seen, connection, number)
    held = fencingToken === null ? null : { fencingToken: { number: fencingToken }, by: number }
    tell()
  }

  const lookOnce = (renewal: Renewal): Promise<void> =>
    (looking ??= look(renewal)
      // The next renewal looks again. A replica that stood still inside a transaction keeps the row for a moment.
      .catch((error: unknown) => log.debug({ err: error }, 'who leads could not be found out'))
      .finally(() => (looking = null)))

  lease.onStanding(tell)
  lease.onRenewed((renewal) => void lookOnce(renewal))

  return {
    current,
    onChange(run) {
      listeners.push(run)
      if (reported !== null) run(reported)
    },
    replicas: () => replicas,
    look: lookOnce,
  }
}

type Seen = {
  readonly fencingToken: number
  readonly leader: ReplicaNumber | null
  readonly led: boolean
  readonly replicas: number
}

const seenBy = async (inTime: InTime, connection: PgConnection): Promise<Seen> => {
  const { rows } = await inTime(connection, connection.run(lookStatement))
  return rows[0] as Seen
}

/**
 * A lease that is over stays over, and the number has to be the one that was seen with it: so no leader with a lease is ever
 * replaced, and of several that try one succeeds. Null: another succeeded.
 */
const take = async (
  inTime: InTime,
  connection: PgConnection,
  seen: number,
  self: ReplicaNumber,
): Promise<number | null> => {
  const answer = connection.run(takeStatement, [seen, self])
  const { count } = await inTime(connection, answer)
  return count === 1 && !connection.ended ? seen + 1 : null
}

const leave = async (inTime: InTime, connection: PgConnection, self: ReplicaNumber): Promise<void> => {
  await inTime(connection, connection.run(leaveStatement, [self]))
}

const lookStatement: Prepared = {
  name: 'leadership-token',
  text: `SELECT number AS "fencingToken", replica AS leader,
      EXISTS (SELECT FROM replica WHERE replica.number = leadership.replica AND expires_at > statement_timestamp()) AS led,
      (SELECT count(*) FROM replica WHERE expires_at > statement_timestamp()) AS replicas
    FROM leadership WHERE id = 1`,
}

const leaveStatement: Prepared = {
  name: 'leadership-leave',
  text: 'UPDATE leadership SET replica = NULL WHERE replica = $1',
}

const takeStatement: Prepared = {
  name: 'leadership-take',
  text: `UPDATE leadership SET number = number + 1, replica = $2 WHERE id = 1 AND number = $1
    AND EXISTS (SELECT FROM replica WHERE replica.number = $2 AND expires_at > clock_timestamp())`,
}
