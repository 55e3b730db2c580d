// What is known of a node that was purged, found by the hash of its name.

import type { NodeId } from '#domain/core/node.ts'
import type { FormerNode } from '#domain/core/purged-node.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Store } from '#plane/store/contract/store.ts'

const purgedName = (id: NodeId): string => sha256Hex(`muster node ${id}`)

export const formerNode = async (store: Pick<Store, 'get'>, id: NodeId): Promise<FormerNode> => {
  const key = purgedName(id)
  return { key, row: await store.get('purged-node', key) }
}
