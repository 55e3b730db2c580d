// The shape of most decisions: one node's row is replaced, and the journal says why.

import { readOf, type Change, type Read, type Row, type Write } from './change.ts'
import { decided, type Attribution, type Decided } from './decision.ts'
import type { EntryDraft } from './journal-entry.ts'
import type { Node, NodeId } from './node.ts'
import { refuse, type Refusal } from './refusal.ts'

export type NodeDecided = Decided & { readonly node: Node }

/** What every decision about one node is given. */
export type NodeFacts = { readonly node: Row<Node>; readonly by: Attribution; readonly nowMs: number }

/** What a decision relied on, writes and says besides the node itself. */
export type Besides = {
  readonly reads?: readonly Read[]
  readonly writes?: readonly Write[]
  /** Behind those of the node. */
  readonly entries?: readonly EntryDraft[]
}

/** Several that happen together. */
export const together = (parts: readonly Besides[]): Required<Besides> => ({
  reads: parts.flatMap(({ reads = [] }) => reads),
  writes: parts.flatMap(({ writes = [] }) => writes),
  entries: parts.flatMap(({ entries = [] }) => entries),
})

/** The same change, with more that happens in it. */
export const withBesides = (change: Change, besides: Besides): Change => ({
  ...change,
  reads: [...change.reads, ...(besides.reads ?? [])],
  writes: [...change.writes, ...(besides.writes ?? [])],
  entries: [...change.entries, ...(besides.entries ?? [])] as unknown as Change['entries'],
})

export const nodeDecided = (
  from: Row<Node>,
  node: Node,
  entries: Change['entries'],
  besides: Besides = {},
): NodeDecided => ({
  ...decided({
    reads: [readOf('node', node.id, from), ...(besides.reads ?? [])],
    writes: [{ put: 'node', value: node }, ...(besides.writes ?? [])],
    entries: [...entries, ...(besides.entries ?? [])] as unknown as Change['entries'],
  }),
  node,
})

/** What was decided on a stand-in (journal/node-shape.ts) says so itself. No store writes it over the row that somebody may still save. */
export const standInOf = ({ writes }: Change): NodeId | null => {
  for (const write of writes) if (write.put === 'node' && write.value.unreadable !== undefined) return write.value.id
  return null
}

export const rowUnreadable = (id: NodeId): Refusal =>
  refuse(
    'NODE_STATE_CONFLICT',
    `the row of ${id} in the database cannot be read: put it back from a backup, or end what it stands for: ` +
      `muster node revoke ${id} --reason REASON, or, if it was not revoked before: muster node quarantine ${id} --reason REASON`,
  )
