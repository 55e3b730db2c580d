// Everything that makes planes over one PostgreSQL replicas of each other.

import type { Change } from '#domain/core/change.ts'
import type { Log } from '#platform/log.ts'
import type { PgConnection, Prepared } from '#platform/postgres.ts'
import type { JournalWitness } from '#plane/store/journal/journal-witness.ts'
import type { Replica, ReplicaNumber, Replicas } from '#plane/store/contract/replicas.ts'
import type { Committed, StoreCore } from '#plane/store/contract/store.ts'
import { answersWithin, type InTime } from './answered-in-time.ts'
import { openQuestions } from './ask.ts'
import { openForeignFeed } from './foreign-feed.ts'
import { openPgHolds } from './holds.ts'
import { openLeadership } from './leadership.ts'
import { openLease, type Lease, type LeaseSettings } from './lease.ts'
import type { PgAccess } from './pg-access.ts'
import { openReplicaMessages } from './replica-messages.ts'
import type { SchemaInUse } from './schema-gate.ts'

export type PgReplicas = {
  readonly replicas: Replicas
  /** What a group of commits writes under; null once the lease is over, by our own clocks. */
  self(): ReplicaNumber | null
  /** A group of commits has found that its database lacks a place this replica knows. */
  onPlaceMissing(why: string): void
  /** After each group of commits: the others look sooner. `awaited`: a caller may be waiting for that. */
  notifyOthers(awaited: boolean): void
  /**
   * Every commit of the store is made in here, so that the feed knows which entries the flows of this replica publish, and neither
   * of them publishes a row older than the other has. The caller publishes the result, in the turn in which it gets it.
   */
  commitHere(change: Change, commit: () => Promise<Committed | 'lost-race'>): Promise<Committed | 'lost-race'>
  onForeignCommit(run: (committed: Committed) => void): void
  /** After the last commit: gives back the lease, the leadership and the channels, so that others take over at once. */
  close(): Promise<void>
}

export type ReplicaParts = {
  readonly access: PgAccess
  readonly witness: JournalWitness
  readonly schema: SchemaInUse
}

/**
 * With a lease, and with its places in the journal taken: rows that are read from the store from now on are not older than those.
 * Rejects where there is no primary that confirms a write.
 */
export const openPgReplicas = async (
  core: StoreCore,
  parts: ReplicaParts,
  settings: LeaseSettings,
): Promise<PgReplicas> => {
  const { access, witness, schema } = parts
  const { pace } = settings
  const opened: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    for (const step of opened.splice(0).toReversed()) await step()
  }
  try {
    const lease = await openLease(core, parts, settings)
    opened.push(() => lease.close())
    const feed = openForeignFeed(core, lease, witness, pace)
    const leadership = openLeadership(core, lease, pace)
    await feed.start()
    opened.push(() => feed.stop())
    const messages = await openReplicaMessages(core, access, lease, pace)
    opened.push(() => messages.close())
    messages.onHint(() => feed.look())
    lease.onRenewed(() => messages.listen())
    const questions = openQuestions(core, lease, messages)
    const holds = openPgHolds(core, access, lease, pace)
    opened.push(() => holds.close())
    const inTime = answersWithin(core.timers, pace.answerWithinMs)
    const stopForgetting = core.timers.every(pace.forgetEveryMs, () => {
      if (leadership.current() !== null) void forget(core.log, inTime, lease, pace.forgetAfterMs)
    })
    opened.push(async () => stopForgetting())
    // A plane that is alone has not to wait for its first renewal.
    await leadership.look(lease.renewal())
    lease.start()

    const replicas: Replicas = {
      get self() {
        return lease.number()
      },
      standing: () => lease.standing(),
      behindMs: () => lease.behindMs(),
      clockOffsetMs: () => lease.clockOffsetMs(),
      onStanding: (run) => lease.onStanding(run),
      leadership: () => leadership.current(),
      onLeadership: (run) => leadership.onChange(run),
      leased: () => leased(access, schema),
      async leasedOrOverSince(graceMs) {
        const { rows } = await lease.confirmed((connection) => connection.run(overSinceStatement, [graceMs]))
        return rows.map((row) => row as Pick<Replica, 'number' | 'name'>)
      },
      count: () => leadership.replicas(),
      holds,
      ask: (replica, topic, question, withinMs) => questions.ask(replica, topic, question, withinMs),
      onQuestion: (topic, answer) => questions.onQuestion(topic, answer),
    }
    let closing: Promise<void> | null = null
    return {
      replicas,
      self: () => lease.self(),
      onPlaceMissing: (why) => feed.missed(why),
      notifyOthers: (awaited) => messages.hint(awaited),
      commitHere: (change, commit) => feed.commitHere(change, commit),
      onForeignCommit: (run) => feed.onForeignCommit(run),
      close: () => (closing ??= close()),
    }
  } catch (error) {
    await close()
    throw error
  }
}

const forget = async (
  log: Log,
  inTime: InTime,
  lease: Pick<Lease, 'renewal'>,
  forgetAfterMs: number,
): Promise<void> => {
  const { connection } = lease.renewal()
  try {
    await forgetReplicas(
      { run: (statement, values) => inTime(connection, connection.run(statement, values)) },
      forgetAfterMs,
    )
  } catch (error) {
    log.debug({ err: error }, 'what replicas have left behind is removed another time')
  }
}

const leased = async (access: Pick<PgAccess, 'read'>, schema: SchemaInUse): Promise<readonly Replica[]> => {
  const { rows } = await access.read(schema.has('replica.clock_offset_ms') ? leasedStatement : leasedWithoutOffset)
  return rows.map((row) => row as Replica)
}

const leasedWith = (clockOffset: string): string =>
  `SELECT replica.number, name, version, floor(extract(epoch FROM started_at) * 1000)::bigint AS "startedAtMs",
      leadership.replica IS NOT NULL AS leads, ${clockOffset} AS "clockOffsetMs"
    FROM replica LEFT JOIN leadership ON leadership.replica = replica.number
    WHERE expires_at > statement_timestamp() ORDER BY replica.number`
const leasedStatement: Prepared = { name: 'replicas-leased', text: leasedWith('clock_offset_ms') }
const leasedWithoutOffset: Prepared = { name: 'replicas-leased-without-offset', text: leasedWith('NULL::bigint') }

const overSinceStatement: Prepared = {
  name: 'replicas-over-since',
  text: `SELECT number, name FROM replica
    WHERE expires_at > clock_timestamp() - $1::float8 * interval '1 millisecond' ORDER BY number`,
}

/** How many rows one statement removes: it holds their locks until it is done. */
const atOnce = 1000

/**
 * Removes what replicas left behind that did not stop in order. Numbers are never given again, so a lease that is over stays so.
 * Removing a lease waits for a transaction that still writes under it; after a short wait it fails, and is tried again.
 */
const forgetReplicas = async (connection: Pick<PgConnection, 'run'>, forgetAfterMs: number): Promise<void> => {
  await connection.run(forgetLeases, [forgetAfterMs])
  const { rows } = await connection.run(lostHolds)
  const gone = rows.map((row) => row['replica'] as ReplicaNumber)
  if (gone.length === 0) return
  for (let count = atOnce; count === atOnce;) count = (await connection.run(forgetHolds, [gone, atOnce])).count
}

const forgetLeases: Prepared = {
  name: 'forget-leases',
  text: `DELETE FROM replica WHERE expires_at < clock_timestamp() - $1::float8 * interval '1 millisecond'`,
}

const lostHolds: Prepared = {
  name: 'forget-lost-holds',
  text: `SELECT DISTINCT replica FROM holder
    WHERE NOT EXISTS (SELECT FROM replica WHERE replica.number = holder.replica)`,
}

const forgetHolds: Prepared = {
  name: 'forget-holds',
  text: `WITH lost AS (SELECT node FROM holder WHERE replica = ANY ($1::bigint[]) ORDER BY node LIMIT $2 FOR UPDATE)
    DELETE FROM holder USING lost WHERE holder.node = lost.node AND holder.replica = ANY ($1::bigint[])`,
}
