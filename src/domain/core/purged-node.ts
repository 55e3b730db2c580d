// What stays of a node whose record was purged (ruling 22): enough for a new registration of its name to go on where it ended.
// Its banned keys, the claims on its keys and its WireGuard keys stay as rows of their own, under this hash in place of its name.

import { readOf, type Read, type Row } from './change.ts'
import type { Node, NodeId } from './node.ts'

export type PurgedNode = {
  /** SHA-256 of the name, hex. It names no node, and can be found again from the name, which the journal keeps. */
  readonly name: string
  /** Its last ones. A new registration continues them: what was handed out before stays old. */
  readonly epoch: number
  readonly tenure: number
  readonly counter: number
  /** The version that its row had. */
  readonly version: number
  readonly purgedAtMs: number
}

/** In place of its name in rows that stay. No node can have this name: it has a colon. */
export const purgedHolder = (name: string): NodeId => `purged:${name}`

/** What the store has of an earlier node of a name that is not in the registry. */
export type FormerNode = { readonly key: string; readonly row: Row<PurgedNode> | null }

/** Where a registration of this name begins. */
export const firstTenure = ({ row }: FormerNode): Pick<Node, 'epoch' | 'tenure' | 'counter'> =>
  row === null
    ? { epoch: 0, tenure: 1, counter: 0 }
    : { epoch: row.value.epoch, tenure: row.value.tenure + 1, counter: row.value.counter }

/** Relies on a node not being in the registry, and on what is known of an earlier one: a purge in between is a lost race. */
export const readsOfAbsent = (id: NodeId, { key, row }: FormerNode): readonly Read[] => [
  { ...readOf('node', id, null), ...(row === null ? {} : { removedAt: row.value.version }) },
  readOf('purged-node', key, row),
]
