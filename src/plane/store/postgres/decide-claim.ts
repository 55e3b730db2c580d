// Who may take over the channel of a node.

import type { ClaimedSession, Holder, ReplicaNumber } from '#plane/store/contract/replicas.ts'

export type ClaimFacts = {
  readonly self: ReplicaNumber
  readonly session: ClaimedSession
  /** The session the claimant has found silent. */
  readonly over: Holder | null
  /** As the store has it, with or without a lease. */
  readonly holder: Holder | null
  readonly leased: ReadonlySet<ReplicaNumber>
}

export const decideClaim = ({ self, session, over, holder, leased }: ClaimFacts): 'claimed' | Holder => {
  if (holder === null || holder.replica === self) return 'claimed'
  if (holder.instance !== null && holder.instance === session.instance) return 'claimed'
  if (!leased.has(holder.replica)) return 'claimed'
  return over !== null && over.replica === holder.replica && over.number === holder.number ? 'claimed' : holder
}
