// The replicas of one plane over one store, as each of them sees it. With the embedded store there is one, and every
// question here has its obvious answer (store/sqlite/sole-replica.ts); with PostgreSQL they know each other by lease rows.

import type { NodeId } from '#domain/core/node.ts'

/** Given once and never again: a replica that starts, or returns after its lease was over, has a higher one. */
export type ReplicaNumber = number

export type Standing =
  | { readonly kind: 'serving' }
  /** The commits of others have not been read for too long: no new session, no mutation, no frame handled. */
  | { readonly kind: 'behind'; readonly why: string }
  /** The store has lost commits that this process knows of: no session, and no mutation that grants anything. */
  | { readonly kind: 'in-doubt'; readonly why: string }
  /** The clock of this machine is too far from the database's: it decides nothing, does not lead and holds no channel. */
  | { readonly kind: 'skewed'; readonly why: string }
  /** Others may act as if this replica were gone: its channels are cut, and no reply leaves it. */
  | { readonly kind: 'expired'; readonly why: string }

/** The right to sweep. A commit that carries it is refused once another replica leads. */
export type FencingToken = { readonly number: number }

export type Replicas = {
  /** The newest: it changes when this replica comes back after its lease was over, so it is asked for, never kept. */
  readonly self: ReplicaNumber
  /** Judged by this process's clocks, without a call: cheap enough for every frame and every reply. */
  standing(): Standing
  /** How long ago it was that everything others had committed was known here; null: not yet. */
  behindMs(): number | null
  /** How far the clock of this machine is from that of the store, above 0 ahead; null: the store has no clock of its own. */
  clockOffsetMs(): number | null
  /** Called when the kind of it changes, within a second of that. */
  onStanding(run: (standing: Standing) => void): void
  /** Null while another replica leads, or while this one is not serving. */
  leadership(): FencingToken | null
  /** Called when this replica begins to lead, and with null when it no longer does. */
  onLeadership(run: (fencingToken: FencingToken | null) => void): void
  /** Those with a lease, this one among them. Asks the store. */
  leased(): Promise<readonly Replica[]>
  /**
   * Those that may act, and those whose lease has been over for less than `graceMs` by the database's clock. True on the
   * primary: a replica that is not among them acts on nothing before it has read everything committed so far. Rejects where that
   * cannot be found out.
   */
  leasedOrOverSince(graceMs: number): Promise<readonly Pick<Replica, 'number' | 'name'>[]>
  /** How many had a lease when last looked; at least 1. */
  count(): number
  readonly holds: Holds
  /**
   * Asks another replica. `no-answer`: it has a lease and did not answer in time, so nothing may be concluded; `gone`: it
   * has none, so everything it held is over.
   */
  ask(replica: ReplicaNumber, topic: string, question: unknown, withinMs: number): Promise<Asked>
  /** What this replica answers on a topic; `null` from the handler is an answer too. */
  onQuestion(topic: string, answer: (question: unknown, from: ReplicaNumber) => Promise<unknown>): void
}

export type Asked = { readonly kind: 'answer'; readonly value: unknown } | { readonly kind: 'no-answer' | 'gone' }

export type Replica = {
  readonly number: ReplicaNumber
  /** Host and process, for people. */
  readonly name: string
  readonly version: string
  readonly startedAtMs: number
  readonly leads: boolean
  /** As it has said itself; null: it does not say. */
  readonly clockOffsetMs: number | null
}

/** Which replica holds the channel of a node. Without a journal entry: it is a location, not an event. */
export type Holds = {
  /**
   * Durable when it resolves, so that from then on every replica finds it. Taken from a session of the same process, of
   * this replica, or of a replica without a lease, without further ado; from any other only where `over` names that very
   * session, found silent. Otherwise nothing changes and who holds it is returned.
   */
  take(node: NodeId, session: HeldSession, over: Hold | null): Promise<'held' | Hold>
  /** That session has ended. Does nothing to a newer one. Written soon, and lost without harm: the lease covers it. */
  release(node: NodeId, session: number): void
  /** Under a lease. */
  of(node: NodeId): Promise<Hold | null>
  /** Active nodes of which no replica under a lease holds a channel. */
  absent(): Promise<readonly NodeId[]>
}

export type HeldSession = {
  readonly number: number
  /** The agent's process, as `Session.process`; null from agents that do not say. */
  readonly instance: string | null
}

export type Hold = HeldSession & { readonly replica: ReplicaNumber }

/** Older than this, and a replica is behind. */
export const mostBehindMs = 10_000
/** How long a lease is good for; longer than the above, so that a replica stops before it is given up. */
export const leaseMs = 15_000
