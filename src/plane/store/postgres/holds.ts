// Which replica holds the channel of a node, in one table and under leases. Requests that arrive together share a
// transaction; releases are written a moment later.

import type { NodeId } from '#domain/core/node.ts'
import { pgTrouble, type PgConnection, type Prepared } from '#platform/postgres.ts'
import type { Hold, Holds, ReplicaNumber } from '#plane/store/contract/replicas.ts'
import { StaleReplica, StoreFault } from '#plane/store/contract/store-errors.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { answeredInTime } from './answered-in-time.ts'
import { takeHolds, holdOf, type HoldRequest, type HoldOutcome } from './take-holds.ts'
import type { Lease } from './lease.ts'
import type { PgAccess } from './pg-access.ts'
import type { ReplicaPace } from './replica-pace.ts'

export type PgHolds = Holds & { close(): Promise<void> }

type Waiting = HoldRequest & {
  readonly untilMs: number
  resolve(outcome: 'held' | Hold): void
  reject(fault: StoreFault): void
}
type Release = { readonly node: NodeId; readonly session: number; readonly replica: ReplicaNumber }

const holdsAtOnce = 500
const againAfterMs = 15

export const openPgHolds = (
  { clock, timers, log }: Pick<StoreCore, 'clock' | 'timers' | 'log'>,
  access: Pick<PgAccess, 'connect' | 'read'>,
  lease: Pick<Lease, 'self' | 'standing' | 'number' | 'confirmed'>,
  pace: ReplicaPace,
): PgHolds => {
  let requests: Waiting[] = []
  /** Requests that met another transaction at their node. */
  const delayed = new Set<Waiting>()
  let releasesDue = false
  const releases = new Map<string, Release>()
  let connection: PgConnection | null = null
  let working: Promise<void> | null = null
  let closed = false

  const connected = async (): Promise<PgConnection> => {
    if (connection !== null && !connection.ended) return connection
    const fresh = await access.connect('holders', {
      lock_timeout: '5s',
      idle_in_transaction_session_timeout: '5s',
    })
    fresh.onWarning((message) => {
      log.warn({ message }, 'the server warned about a hold, which may not be replicated: it does not count')
      fresh.destroy()
    })
    connection = fresh
    return fresh
  }

  const serving = (): ReplicaNumber | null => (lease.standing().kind === 'serving' ? lease.self() : null)

  const answer = (waiting: Waiting, outcome: HoldOutcome): void => {
    if (outcome !== 'again') waiting.resolve(outcome)
    else if (clock.monotonicMs() < waiting.untilMs) later(waiting)
    else waiting.reject(new StoreFault('a hold was not taken', 'the node is being changed'))
  }
  const later = (waiting: Waiting): void => {
    delayed.add(waiting)
    timers.after(againAfterMs, () => delayed.delete(waiting) && enqueue(waiting), 'background')
  }
  const enqueue = (waiting: Waiting): void => {
    requests.push(waiting)
    if (requests.length === 1) timers.soon(wake)
  }

  const takeAll = async (batch: readonly Waiting[]): Promise<void> => {
    const self = serving()
    let outcomes: readonly HoldOutcome[]
    try {
      if (self === null) throw new StaleReplica('this replica is not serving')
      const on = await connected()
      outcomes = await answeredInTime(timers, on, pace.holdWithinMs, takeHolds(on, self, batch))
      // A hold that was taken under a lease that is over does not count.
      if (serving() !== self) throw new StaleReplica('this replica is not serving')
    } catch (error) {
      if (pgTrouble(error) === 'again') return batch.forEach((waiting) => answer(waiting, 'again'))
      if (!(error instanceof StaleReplica)) connection?.destroy()
      const fault = error instanceof StoreFault ? error : new StoreFault('a hold was not taken', error)
      for (const waiting of batch) {
        waiting.reject(fault)
        // It may have been kept all the same.
        release(waiting.node, waiting.session.number)
      }
      return
    }
    batch.forEach((waiting, at) => answer(waiting, outcomes[at] as HoldOutcome))
  }

  const release = (node: NodeId, number: number): void =>
    void releases.set(`${node} ${number}`, { node, session: number, replica: lease.number() })

  /** Until it is written, or its lease is over: then it has no effect any more. */
  const releaseAll = async (): Promise<void> => {
    const self = lease.self()
    for (const [place, { replica }] of releases) if (replica !== lease.number()) releases.delete(place)
    const requested = new Set([...requests, ...delayed].map(({ node, session: { number } }) => `${node} ${number}`))
    const due = [...releases].filter(([place]) => !requested.has(place))
    if (self === null || due.length === 0) return
    const nodes = due.map(([, { node }]) => node)
    const numbers = due.map(([, { session: number }]) => number)
    try {
      const on = await connected()
      await answeredInTime(timers, on, pace.answerWithinMs, on.run(releaseStatement, [self, nodes, numbers]))
      for (const [place] of due) releases.delete(place)
    } catch (error) {
      log.debug({ err: error }, 'channels that have ended are still in the store; it is tried again')
      if (pgTrouble(error) !== 'again') connection?.destroy()
    }
  }

  const workOff = async (): Promise<void> => {
    const batch = requests.slice(0, holdsAtOnce)
    requests = requests.slice(holdsAtOnce)
    if (batch.length > 0) await takeAll(batch)
    if (releasesDue) await releaseAll()
    releasesDue = false
  }
  const wake = (): void => {
    if (closed || working !== null) return
    working = workOff().finally(() => {
      working = null
      if (requests.length > 0) wake()
    })
  }
  const stopReleasing = timers.every(pace.releaseEveryMs, () => {
    releasesDue = releases.size > 0
    if (releasesDue) wake()
  })
  return {
    async take(node, its, over) {
      if (closed) throw new StoreFault('a hold was not taken', 'the store is closed')
      if (serving() === null) throw new StaleReplica('this replica is not serving')
      // Given up after trouble and taken again: it is there.
      releases.delete(`${node} ${its.number}`)
      return new Promise((resolve, reject) => {
        const untilMs = clock.monotonicMs() + pace.holdWithinMs
        enqueue({ node, session: its, over, untilMs, resolve, reject })
      })
    },
    release,
    of: openHoldLookup(lease),
    async absent() {
      const { rows } = await access.read(absentStatement)
      return rows.map((row) => row['key'] as NodeId)
    },
    async close() {
      closed = true
      stopReleasing()
      await working
      for (const { reject } of [...requests, ...delayed])
        reject(new StoreFault('a hold was not taken', 'the store is closed'))
      await connection?.end()
    },
  }
}

/** In the order in which requests lock them. */
const releaseStatement: Prepared = {
  name: 'holds-release',
  text: `WITH ended AS (SELECT holder.node FROM holder
      JOIN unnest($2::text[], $3::bigint[]) AS gone (node, session)
        ON holder.node = gone.node AND holder.session = gone.session AND holder.replica = $1
      ORDER BY holder.node FOR UPDATE OF holder)
    DELETE FROM holder USING ended WHERE holder.node = ended.node`,
}

const absentStatement: Prepared = {
  name: 'holds-absent',
  text: `SELECT key FROM node WHERE membership = 'active' AND NOT EXISTS (
      SELECT FROM holder JOIN replica ON replica.number = holder.replica
      WHERE holder.node = node.key AND replica.expires_at > statement_timestamp())`,
}

type Found = ReadonlyMap<NodeId, Hold>

/**
 * Which replica holds the channel of a node, for a decision: "none" is believed only from a primary that can still commit.
 * Questions that arrive together share the look and the write that confirms it.
 */
const openHoldLookup = (lease: Pick<Lease, 'confirmed'>): ((node: NodeId) => Promise<Hold | null>) => {
  /** Not begun yet, so that a caller that comes now is part of it. */
  let next: { readonly nodes: Set<NodeId>; readonly found: Promise<Found> } | null = null
  let last: Promise<unknown> = Promise.resolve()

  const look = async (nodes: ReadonlySet<NodeId>): Promise<Found> => {
    try {
      const { rows } = await lease.confirmed((connection) => connection.run(holdsStatement, [[...nodes]]))
      return new Map(rows.map((row) => [row['node'] as NodeId, holdOf(row)]))
    } catch (error) {
      throw new StoreFault('who holds a channel could not be found out', error)
    }
  }
  const begin = (): NonNullable<typeof next> => {
    const nodes = new Set<NodeId>()
    const found = last.then(() => {
      next = null
      return look(nodes)
    })
    last = found.catch(() => {})
    return { nodes, found }
  }

  return async (node) => {
    next ??= begin()
    next.nodes.add(node)
    return (await next.found).get(node) ?? null
  }
}

const holdsStatement: Prepared = {
  name: 'holds-of',
  text: `SELECT holder.node, holder.replica, holder.session, holder.instance
    FROM holder JOIN replica ON replica.number = holder.replica
    WHERE holder.node = ANY ($1::text[]) AND replica.expires_at > clock_timestamp()`,
}
