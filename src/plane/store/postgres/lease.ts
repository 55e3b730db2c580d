// The lease of this replica: a row with a number that is given once, renewed every second by a synchronous write. It is
// valid for a fixed time by the database's clock; here it is counted from the moment the renewal was sent, so it is over here before
// any other replica takes it to be. A lease that is over is never renewed: the replica gets a new number.

import type { Log } from '#platform/log.ts'
import { pgTrouble, type PgResult, type PgConnection, type Prepared } from '#platform/postgres.ts'
import { lossInWords, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import type { ReplicaNumber, Standing } from '#plane/store/contract/replicas.ts'
import { StaleReplica, StoreFault } from '#plane/store/contract/store-errors.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { answersWithin, type InTime } from './answered-in-time.ts'
import type { PgAccess } from './pg-access.ts'
import type { ReplicaPace } from './replica-pace.ts'
import { migrationLock } from './run-migrations.ts'
import type { SchemaInUse } from './schema-gate.ts'
import { newestSchema } from './schema-since.ts'
import { clockOffset, elapsedMs, instantOf, offsetNow, standingAt } from './standing-at.ts'
import type { ClockOffset, Instant } from './standing-at.ts'

export type Lease = {
  /** The number given last, also if its lease is over. */
  number(): ReplicaNumber
  /** Null once the lease is over, by our own clocks. */
  self(): ReplicaNumber | null
  standing(): Standing
  onStanding(run: (standing: Standing) => void): void
  renewal(): Renewal
  /** Every second or so, while that succeeds. */
  onRenewed(run: (renewal: Renewal) => void): void
  /** Everything that had been committed by then has been published here. */
  caughtUp(by: Instant): void
  /** Commits cannot be published here until `caughtUp` is called again, so the replica is behind at once: the reason, in a sentence. */
  fallBehind(why: string): void
  /** How long ago that was; null: never. */
  behindMs(): number | null
  /** How far this machine's clock is ahead of the database's; null: not known yet. */
  clockOffsetMs(): number | null
  /**
   * What is seen there was true on the primary: the same connection confirms a synchronous write afterwards, which a
   * primary that has been given up cannot.
   */
  confirmed<T>(look: (connection: PgConnection) => Promise<T>): Promise<T>
  start(): void
  /** Gives the lease back, together with what hangs on it. */
  close(): Promise<void>
}

/** A lease as it was confirmed last, and the connection that confirmed it. */
export type Renewal = {
  readonly connection: PgConnection
  readonly number: ReplicaNumber
  readonly sentAt: Instant
  /** Null: the answer did not say. */
  readonly clock: ClockOffset | null
}

export type LeaseParts = {
  readonly access: Pick<PgAccess, 'connect'>
  readonly witness: Pick<JournalWitness, 'loss' | 'onLoss'>
  readonly schema: Pick<SchemaInUse, 'has' | 'learn'>
}

export type LeaseSettings = {
  /** Host and process, for people. */
  readonly name: string
  readonly version: string
  readonly pace: ReplicaPace
  /** How far this machine's clock may be from the database's; Infinity: they are not compared. */
  readonly clockToleranceMs: number
}

/** Rejects where no lease can be had. */
export const openLease = async (
  { clock, timers, log }: Pick<StoreCore, 'clock' | 'timers' | 'log'>,
  { access, witness, schema }: LeaseParts,
  { name, version, pace, clockToleranceMs }: LeaseSettings,
): Promise<Lease> => {
  const inTime = answersWithin(timers, pace.answerWithinMs)
  const standingListeners: ((standing: Standing) => void)[] = []
  const renewalListeners: ((renewal: Renewal) => void)[] = []
  const startedAtMs = clock.nowMs()
  const clockIn = (sentAt: Instant, rows: PgResult['rows']): ClockOffset | null => {
    const databaseMs = rows[0]?.['nowMs']
    return typeof databaseMs === 'number' ? clockOffset(sentAt, instantOf(clock), databaseMs) : null
  }
  const register = async (on: PgConnection): Promise<Renewal> => {
    const sentAt = instantOf(clock)
    const rows = await insertLease(inTime, on, [name, version, startedAtMs, pace.leaseMs, newestSchema])
    const number = rows[0]?.['number'] as ReplicaNumber | undefined
    if (number === undefined)
      throw new StoreFault('no lease is taken', 'the store has a newer schema than this release knows')
    schema.learn(Number(rows[0]?.['schema']))
    log.info({ replica: number }, 'this replica has a lease')
    return { connection: on, number, sentAt, clock: clockIn(sentAt, rows) }
  }
  let connection = await connectLease(access, log)
  let renewal = await register(connection)
  /** Null: the row is gone, or has expired. */
  let renewed: Instant | null = renewal.sentAt
  let caughtUpAt: Instant | null = null
  let whyBehind: string | null = null
  let beating: Promise<void> | null = null
  let troubled = false
  let closing: Promise<void> | null = null
  let stopTicking = (): void => {}
  let cancelRetry = (): void => {}

  const standing = (): Standing => {
    const at = { now: instantOf(clock), renewed, caughtUpAt, whyBehind, clock: renewal.clock, clockToleranceMs }
    const now = standingAt({ ...at, ...pace })
    const loss = witness.loss()
    return loss === null || now.kind === 'expired' ? now : { kind: 'in-doubt', why: lossInWords(loss) }
  }
  let reported = standing().kind
  /** Called before every change too: an interval in which the lease was over is reported, however it ended. */
  const judge = (): void => {
    const now = standing()
    if (now.kind === reported) return
    reported = now.kind
    log.info({ standing: now.kind, why: 'why' in now ? now.why : null }, 'the standing of this replica has changed')
    callAll(standingListeners, now)
  }
  const callAll = <T>(listeners: readonly ((value: T) => void)[], value: T): void => {
    for (const run of listeners) {
      try {
        run(value)
      } catch (error) {
        log.error({ err: error }, 'a listener of the lease failed')
      }
    }
  }
  const learn = (change: () => void): void => {
    judge()
    change()
    judge()
  }
  const keep = (next: Renewal): void =>
    learn(() => {
      renewal = next
      renewed = next.sentAt
    })

  const renewOn = async (on: PgConnection): Promise<'renewed' | 'over'> => {
    const { number } = renewal
    const sentAt = instantOf(clock)
    const known = renewal.clock === null ? 0 : Math.round(offsetNow(renewal.clock, sentAt))
    const { count, rows } = schema.has('replica.clock_offset_ms')
      ? await confirmedWrite(inTime, on, renewStatement, [number, pace.leaseMs, known])
      : await confirmedWrite(inTime, on, renewWithoutOffset, [number, pace.leaseMs])
    // Meanwhile there may be another connection, and another number.
    if (number !== renewal.number) return 'over'
    if (count !== 1) learn(() => void (renewed = null))
    else if (sentAt.monotonicMs >= renewal.sentAt.monotonicMs)
      keep({ connection: on, number, sentAt, clock: clockIn(sentAt, rows) })
    return count === 1 ? 'renewed' : 'over'
  }
  const beatOnce = async (): Promise<void> => {
    if (connection.ended) connection = await connectLease(access, log)
    if ((await renewOn(connection)) === 'over') keep(await register(connection))
    if (troubled) log.info({ replica: renewal.number }, 'the lease is renewed again')
    troubled = false
    callAll(renewalListeners, renewal)
  }
  const beat = (): void => {
    judge()
    if (closing !== null) return
    beating ??= beatOnce()
      .catch((error: unknown) => {
        if (!troubled) log.warn({ err: error }, 'the lease could not be renewed; it is tried again')
        troubled = true
        if (pgTrouble(error) !== 'again') connection.destroy()
        cancelRetry = timers.after(pace.renewEveryMs / 4, beat, 'background')
      })
      .finally(() => (beating = null))
  }

  witness.onLoss(judge)

  const close = async (): Promise<void> => {
    stopTicking()
    await beating
    cancelRetry()
    try {
      if (!connection.ended) await giveBack(inTime, connection, renewal.number)
    } catch (error) {
      log.warn({ err: error }, 'the lease could not be released; it expires')
    }
    learn(() => void (renewed = null))
    await connection.end()
  }

  return {
    number: () => renewal.number,
    self: () => (standing().kind === 'expired' ? null : renewal.number),
    standing,
    onStanding: (run) => void standingListeners.push(run),
    renewal: () => renewal,
    onRenewed: (run) => void renewalListeners.push(run),
    caughtUp: (by) =>
      learn(() => {
        caughtUpAt = by
        whyBehind = null
      }),
    fallBehind: (why) => learn(() => void (whyBehind = why)),
    behindMs: () => (caughtUpAt === null ? null : elapsedMs(caughtUpAt, instantOf(clock))),
    clockOffsetMs: () => (renewal.clock === null ? null : offsetNow(renewal.clock, instantOf(clock))),
    async confirmed(look) {
      const on = connection
      // On one connection the one comes after the other, also where both are sent at once.
      const looked = inTime(on, look(on))
      const [seen, outcome] = await Promise.all([looked, renewOn(on)])
      if (outcome === 'over') throw new StaleReplica('the lease of this replica is over')
      return seen
    },
    start() {
      const stops = [timers.every(pace.renewEveryMs, beat), timers.every(pace.judgeEveryMs, judge)]
      stopTicking = () => stops.forEach((stop) => stop())
    },
    close: () => (closing ??= close()),
  }
}

const connectLease = async (access: Pick<PgAccess, 'connect'>, log: Log): Promise<PgConnection> => {
  // A statement that waits for another's lock must not delay a renewal.
  const connection = await access.connect('lease', { lock_timeout: '500ms' })
  connection.onWarning((message) => {
    log.warn({ message }, 'the server warned about a renewal, which may not be replicated: it does not count')
    connection.destroy()
  })
  return connection
}

/** No row: the schema is newer than the one given. */
const insertLease = async (
  inTime: InTime,
  connection: PgConnection,
  values: readonly (string | number)[],
): Promise<PgResult['rows']> => {
  // A migration sees this lease, or this sees what the migration did: no lease is taken on a schema that is not known here.
  const registering = [
    connection.exec(`BEGIN; SET LOCAL lock_timeout = '2s'; SELECT pg_advisory_xact_lock_shared(${migrationLock})`),
    connection.run(registerStatement, values),
    connection.exec('COMMIT'),
  ] as const
  const registered = Promise.all(registering).catch((error: unknown) => {
    connection.destroy()
    throw error
  })
  const [, { rows }] = await inTime(connection, registered)
  if (connection.ended) throw new StoreFault('a lease was not confirmed', 'its connection has ended')
  return rows
}

const confirmedWrite = async (
  inTime: InTime,
  connection: PgConnection,
  statement: Prepared,
  values: readonly (string | number)[],
): Promise<PgResult> => {
  const result = await inTime(connection, connection.run(statement, values))
  if (connection.ended) throw new StoreFault('a renewal was not confirmed', 'its connection has ended')
  return result
}

/** The number is removed last: a transaction that still writes under it holds that row, and is waited for. */
const giveBack = async (inTime: InTime, connection: PgConnection, number: ReplicaNumber): Promise<void> => {
  const steps = [
    connection.exec("BEGIN; SET LOCAL lock_timeout = '2s'"),
    connection.run(leaveHolds, [number]),
    connection.run(leaveLeadership, [number]),
    connection.run(leaveLease, [number]),
    connection.exec('COMMIT'),
  ]
  await inTime(connection, Promise.all(steps))
}

const registerStatement: Prepared = {
  name: 'lease-register',
  text: `INSERT INTO replica (name, version, started_at, expires_at)
    SELECT $1, $2, to_timestamp($3::float8 / 1000), clock_timestamp() + $4::float8 * interval '1 millisecond'
    FROM muster_schema WHERE muster_schema.version <= $5::integer
    RETURNING number, extract(epoch FROM clock_timestamp())::float8 * 1000 AS "nowMs",
      (SELECT muster_schema.version FROM muster_schema) AS schema`,
}

const renewing = (alsoSet: string): string =>
  `UPDATE replica SET expires_at = clock_timestamp() + $2::float8 * interval '1 millisecond'${alsoSet}
    WHERE number = $1 AND expires_at > clock_timestamp()
    RETURNING extract(epoch FROM clock_timestamp())::float8 * 1000 AS "nowMs"`
const renewStatement: Prepared = { name: 'lease-renew', text: renewing(', clock_offset_ms = $3') }
const renewWithoutOffset: Prepared = { name: 'lease-renew-without-offset', text: renewing('') }

/** In the order in which other replicas lock them to take them: when a plane stops, its agents connect elsewhere in the same moment. */
const leaveHolds: Prepared = {
  name: 'lease-leave-holds',
  text: `WITH held AS (SELECT node FROM holder WHERE replica = $1 ORDER BY node FOR UPDATE)
    DELETE FROM holder USING held WHERE holder.node = held.node AND holder.replica = $1`,
}
const leaveLeadership: Prepared = {
  name: 'lease-leave-leadership',
  text: 'UPDATE leadership SET replica = NULL WHERE replica = $1',
}
const leaveLease: Prepared = { name: 'lease-leave', text: 'DELETE FROM replica WHERE number = $1' }
