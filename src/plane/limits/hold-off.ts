// Taking an identity away is a race against its holder: whoever keeps changing the node's record makes every other
// decision on it lose. So while one is taken away nothing new is begun for that node. No safety rests on this, which is
// the commit's; only that a node cannot talk its revocation into "try later".

import type { NodeId } from '#domain/core/node.ts'

export type HoldOff = {
  during<T>(node: NodeId, run: () => Promise<T>): Promise<T>
  /** Null: the node is not held off. Else ends when it no longer is. */
  over(node: NodeId): Promise<void> | null
}

export const openHoldOff = (): HoldOff => {
  const held = new Map<NodeId, Promise<void>>()
  return {
    async during(node, run) {
      // Several may hold off the same node: the last to end lets it go.
      const before = held.get(node)
      const { promise, resolve } = Promise.withResolvers<void>()
      const both = Promise.all([before, promise]).then(() => {
        if (held.get(node) === both) held.delete(node)
      })
      held.set(node, both)
      try {
        return await run()
      } finally {
        resolve()
      }
    },
    over: (node) => held.get(node) ?? null,
  }
}
