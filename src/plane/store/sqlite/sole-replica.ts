// The only plane on its store: it serves and leads unless the store has lost commits, and holds every channel there is.

import type { NodeId } from '#domain/core/node.ts'
import { lossInWords, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import type {
  HeldSession,
  FencingToken,
  Hold,
  Holds,
  Replica,
  Replicas,
  Standing,
} from '#plane/store/contract/replicas.ts'

export type SoleReplica = Replicas & {
  /** In the turn of a commit. */
  isHeld(node: NodeId): boolean
}

const self = 1
const fencingToken: FencingToken = { number: 1 }

/** `activeNodes`: every active node. */
export const openSoleReplica = (
  { name, version, startedAtMs }: Pick<Replica, 'name' | 'version' | 'startedAtMs'>,
  witness: Pick<JournalWitness, 'loss' | 'onLoss'>,
  activeNodes: () => Promise<readonly NodeId[]>,
): SoleReplica => {
  const held = new Map<NodeId, HeldSession>()
  const holdOf = (node: NodeId): Hold | null => {
    const session = held.get(node)
    return session === undefined ? null : { ...session, replica: self }
  }
  const holds: Holds = {
    async take(node, session) {
      held.set(node, session)
      return 'held'
    },
    release(node, session) {
      if (held.get(node)?.number === session) held.delete(node)
    },
    of: async (node) => holdOf(node),
    absent: async () => (await activeNodes()).filter((node) => !held.has(node)),
  }
  const standing = (): Standing => {
    const loss = witness.loss()
    return loss === null ? { kind: 'serving' } : { kind: 'in-doubt', why: lossInWords(loss) }
  }
  const leadership = (): FencingToken | null => (witness.loss() === null ? fencingToken : null)
  return {
    self,
    standing,
    behindMs: () => 0,
    clockOffsetMs: () => null,
    onStanding: (run) => witness.onLoss(() => run(standing())),
    leadership,
    onLeadership(run) {
      witness.onLoss(() => run(leadership()))
      if (leadership() !== null) run(fencingToken)
    },
    leased: async () => [
      { number: self, name, version, startedAtMs, leads: leadership() !== null, clockOffsetMs: null },
    ],
    leasedOrOverSince: async () => [{ number: self, name }],
    count: () => 1,
    holds,
    ask: async () => ({ kind: 'gone' }),
    onQuestion: () => {},
    isHeld: (node) => held.has(node),
  }
}
