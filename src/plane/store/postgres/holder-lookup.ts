// Who holds the channel of a node, for whoever decides on it: "nobody" is believed only from a primary that can still
// commit. Questions that arrive together share the look and the write that confirms it.

import type { NodeId } from '#domain/core/node.ts'
import type { Prepared } from '#platform/postgres.ts'
import type { Holder } from '#plane/store/contract/replicas.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { holderOf } from './claim-holders.ts'
import type { Lease } from './lease.ts'

type Found = ReadonlyMap<NodeId, Holder>

export const openHolderLookup = (lease: Pick<Lease, 'confirmed'>): ((node: NodeId) => Promise<Holder | null>) => {
  /** Not begun yet, so that whoever comes now is part of it. */
  let next: { readonly nodes: Set<NodeId>; readonly found: Promise<Found> } | null = null
  let last: Promise<unknown> = Promise.resolve()

  const look = async (nodes: ReadonlySet<NodeId>): Promise<Found> => {
    try {
      const { rows } = await lease.confirmed((session) => session.run(holdersStatement, [[...nodes]]))
      return new Map(rows.map((row) => [row['node'] as NodeId, holderOf(row)]))
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

const holdersStatement: Prepared = {
  name: 'holders-of',
  text: `SELECT holder.node, holder.replica, holder.session, holder.instance
    FROM holder JOIN replica ON replica.number = holder.replica
    WHERE holder.node = ANY ($1::text[]) AND replica.expires_at > clock_timestamp()`,
}
