// Holds of many nodes taken in one transaction: a boot storm opens thousands of channels at once.
//
// The row of the node is locked, so that a lapse, which has it to itself, either comes first or sees the hold. Rows are
// locked in one order by all replicas, and a node that another transaction is writing is left for the next one, so that the
// others do not wait.

import type { NodeId } from '#domain/core/node.ts'
import type { PgConnection, Prepared } from '#platform/postgres.ts'
import type { HeldSession, Hold, ReplicaNumber } from '#plane/store/contract/replicas.ts'
import { StaleReplica, StoreFault } from '#plane/store/contract/store-errors.ts'

export type HoldRequest = { readonly node: NodeId; readonly session: HeldSession; readonly over: Hold | null }

/** `again`: another transaction had that node at the same moment. */
export type HoldOutcome = 'held' | 'again' | Hold

/** One outcome a request, in their order; durable when it resolves. */
export const takeHolds = async (
  connection: PgConnection,
  self: ReplicaNumber,
  requests: readonly HoldRequest[],
): Promise<readonly HoldOutcome[]> => {
  try {
    return await inTransaction(connection, self, requests)
  } catch (error) {
    if (!connection.ended) await connection.exec('ROLLBACK')
    throw error
  }
}

const inTransaction = async (
  connection: PgConnection,
  self: ReplicaNumber,
  requests: readonly HoldRequest[],
): Promise<readonly HoldOutcome[]> => {
  const nodes = [...new Set(requests.map(({ node }) => node))].sort()
  const [, own, free, held, leases] = await Promise.all([
    connection.exec('BEGIN'),
    connection.run(ownLease, [self]),
    connection.run(lockNodes, [nodes]),
    connection.run(lockHolds, [nodes]),
    connection.run(leased),
  ])
  if (own.count !== 1) throw new StaleReplica('the lease of this replica is over')
  const before = new Map(held.rows.map((row) => [row['node'] as NodeId, holdOf(row)]))
  const outcomes = decideAll(requests, {
    self,
    before,
    locked: new Set(free.rows.map((row) => row['key'] as NodeId)),
    leased: new Set(leases.rows.map((row) => row['number'] as ReplicaNumber)),
  })
  const taken = new Map<NodeId, HeldSession>()
  requests.forEach(({ node, session: its }, at) => outcomes[at] === 'held' && taken.set(node, its))
  const changed = [...taken].filter(([node]) => before.has(node))
  const fresh = [...taken].filter(([node]) => !before.has(node)).sort(([one], [other]) => (one < other ? -1 : 1))
  const [, inserted] = await Promise.all([
    connection.run(changeHolds, [self, ...columnsOf(changed)]),
    connection.run(addHolds, [self, ...columnsOf(fresh)]),
    connection.exec('COMMIT'),
  ])
  if (connection.ended) throw new StoreFault('a hold was not confirmed', 'its connection has ended')
  const added = new Set(inserted.rows.map((row) => row['node'] as NodeId))
  return outcomes.map((outcome, at) => {
    const { node } = requests[at] as HoldRequest
    return outcome === 'held' && !before.has(node) && !added.has(node) ? 'again' : outcome
  })
}

type BatchFacts = {
  readonly self: ReplicaNumber
  readonly before: ReadonlyMap<NodeId, Hold>
  readonly locked: ReadonlySet<NodeId>
  readonly leased: ReadonlySet<ReplicaNumber>
}

/** Later requests for a node see earlier ones. */
const decideAll = (requests: readonly HoldRequest[], facts: BatchFacts): readonly HoldOutcome[] => {
  const now = new Map(facts.before)
  return requests.map(({ node, session, over }) => {
    if (!facts.locked.has(node)) return 'again'
    const outcome = decideHold({ ...facts, session, over, hold: now.get(node) ?? null })
    if (outcome === 'held') now.set(node, { ...session, replica: facts.self })
    return outcome
  })
}

/** Who may take over the channel of a node. */
export type HoldFacts = {
  readonly self: ReplicaNumber
  readonly session: HeldSession
  /** The session that the caller has found silent. */
  readonly over: Hold | null
  /** As the store has it, with or without a lease. */
  readonly hold: Hold | null
  readonly leased: ReadonlySet<ReplicaNumber>
}

export const decideHold = ({ self, session, over, hold, leased }: HoldFacts): 'held' | Hold => {
  if (hold === null || hold.replica === self) return 'held'
  if (hold.instance !== null && hold.instance === session.instance) return 'held'
  if (!leased.has(hold.replica)) return 'held'
  return over !== null && over.replica === hold.replica && over.number === hold.number ? 'held' : hold
}

export const holdOf = (row: Readonly<Record<string, unknown>>): Hold => ({
  replica: row['replica'] as ReplicaNumber,
  number: row['session'] as number,
  instance: row['instance'] as string | null,
})

const columnsOf = (sessions: readonly (readonly [NodeId, HeldSession])[]) => [
  sessions.map(([node]) => node),
  sessions.map(([, { number }]) => number),
  sessions.map(([, { instance }]) => instance),
]

/** A renewal does not disturb it; removing the lease has to wait. */
const ownLease: Prepared = {
  name: 'hold-own-lease',
  text: 'SELECT FROM replica WHERE number = $1 AND expires_at > clock_timestamp() FOR KEY SHARE',
}

const lockNodes: Prepared = {
  name: 'hold-lock-nodes',
  text: 'SELECT key FROM node WHERE key = ANY ($1::text[]) ORDER BY key FOR SHARE SKIP LOCKED',
}

const lockHolds: Prepared = {
  name: 'hold-lock-holds',
  text: `SELECT node, replica, session, instance FROM holder WHERE node = ANY ($1::text[]) ORDER BY node FOR UPDATE`,
}

const leased: Prepared = {
  name: 'hold-leased',
  text: 'SELECT number FROM replica WHERE expires_at > clock_timestamp()',
}

const changeHolds: Prepared = {
  name: 'hold-change',
  text: `UPDATE holder SET replica = $1, session = request.session, instance = request.instance
    FROM unnest($2::text[], $3::bigint[], $4::text[]) AS request (node, session, instance)
    WHERE holder.node = request.node`,
}

const addHolds: Prepared = {
  name: 'hold-add',
  text: `INSERT INTO holder (node, replica, session, instance)
    SELECT node, $1, session, instance FROM unnest($2::text[], $3::bigint[], $4::text[]) AS request (node, session, instance)
    ON CONFLICT (node) DO NOTHING RETURNING node`,
}
