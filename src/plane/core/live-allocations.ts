// What runs on a node. Read after the node's row, whose version every change of it raises: a decision on both is refused
// by the store when something came or went in between.

import { mostAllocations, type Allocation } from '#domain/fleet/allocation.ts'
import type { Row } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Store } from '#plane/store/contract/store.ts'

export const liveAllocations = async (
  store: Pick<Store, 'list'>,
  node: NodeId,
): Promise<readonly Row<Allocation>[]> => {
  const inState = (state: Allocation['state']['kind']) =>
    store.list('allocation', { where: { node, state }, after: null, limit: mostAllocations })
  const [running, releasing] = await Promise.all([inState('running'), inState('releasing')])
  return [...running, ...releasing]
}
