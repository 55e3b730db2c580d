// A withdrawal races against the holder of the identity: a node that keeps changing its own row makes every other decision on it
// lose. So during a withdrawal nothing new is begun for that node. Safety comes from the commit; this only keeps a node from
// delaying its own revocation.

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
