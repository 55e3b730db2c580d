// The shape of most decisions: one node's row is replaced, and the journal says why.

import { readOf, type Change, type Read, type Row, type Write } from './change.ts'
import { decided, type Attribution, type Decided } from './decision.ts'
import type { Node } from './node.ts'

export type NodeDecided = Decided & { readonly node: Node }

/** What every decision about one node is given. */
export type NodeFacts = { readonly node: Row<Node>; readonly by: Attribution; readonly nowMs: number }

/** What a decision relied on or writes besides the node itself. */
export type Besides = { readonly reads?: readonly Read[]; readonly writes?: readonly Write[] }

export const nodeDecided = (
  from: Row<Node>,
  node: Node,
  entries: Change['entries'],
  besides: Besides = {},
): NodeDecided => ({
  ...decided({
    reads: [readOf('node', node.id, from), ...(besides.reads ?? [])],
    writes: [{ put: 'node', value: node }, ...(besides.writes ?? [])],
    entries,
  }),
  node,
})
