// The only plane on its store: it always serves, always leads, and holds every channel there is.

import type { NodeId } from '#domain/node.ts'
import type { ClaimedSession, Fence, Holder, Holders, Replicas } from './replicas.ts'

export type SoleReplicaDeps = {
  readonly name: string
  readonly version: string
  readonly startedAtMs: number
  /** Every active node. */
  activeNodes(): Promise<readonly NodeId[]>
}

export type SoleReplica = Replicas & {
  /** In the turn of a commit. */
  isHeld(node: NodeId): boolean
}

const self = 1
const fence: Fence = { number: 1 }

export const openSoleReplica = (deps: SoleReplicaDeps): SoleReplica => {
  const held = new Map<NodeId, ClaimedSession>()
  const holderOf = (node: NodeId): Holder | null => {
    const session = held.get(node)
    return session === undefined ? null : { ...session, replica: self }
  }
  const holders: Holders = {
    async claim(node, session) {
      held.set(node, session)
      return 'claimed'
    },
    release(node, session) {
      if (held.get(node)?.number === session) held.delete(node)
    },
    of: async (node) => holderOf(node),
    absent: async () => (await deps.activeNodes()).filter((node) => !held.has(node)),
  }
  const { name, version, startedAtMs } = deps
  return {
    self,
    standing: () => ({ kind: 'serving' }),
    behindMs: () => 0,
    clockOffsetMs: () => null,
    onStanding: () => {},
    leadership: () => fence,
    onLeadership: (run) => run(fence),
    leased: async () => [{ number: self, name, version, startedAtMs, leads: true, clockOffsetMs: null }],
    leasedOrOverSince: async () => [{ number: self, name }],
    count: () => 1,
    holders,
    ask: async () => ({ kind: 'gone' }),
    onQuestion: () => {},
    isHeld: (node) => held.has(node),
  }
}
