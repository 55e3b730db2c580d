// The shape of most decisions: one node's row is replaced, and the journal says why.

import { readOf, type Change, type Read, type Row, type Write } from './change.ts'
import { decided, type Attribution, type Decided } from './decision.ts'
import type { EntryDraft } from './journal-entry.ts'
import type { Node, NodeId } from './node.ts'
import { refuse, type Refusal } from './refusal.ts'

export type NodeDecided = Decided & { readonly node: Node }

/** What every decision about one node is given. */
export type NodeFacts = { readonly node: Row<Node>; readonly by: Attribution; readonly nowMs: number }

/** A part of a change: what it relied on, writes and says beside the row of the node. */
export type ChangePart = {
  readonly reads?: readonly Read[]
  readonly writes?: readonly Write[]
  /** Behind those of the node. */
  readonly entries?: readonly EntryDraft[]
}

/** Several that happen together. */
export const mergeParts = (parts: readonly ChangePart[]): Required<ChangePart> => ({
  reads: parts.flatMap(({ reads = [] }) => reads),
  writes: parts.flatMap(({ writes = [] }) => writes),
  entries: parts.flatMap(({ entries = [] }) => entries),
})

/** The same change, with more that happens in it. */
export const withPart = (change: Change, extra: ChangePart): Change => ({
  ...change,
  reads: [...change.reads, ...(extra.reads ?? [])],
  writes: [...change.writes, ...(extra.writes ?? [])],
  entries: [...change.entries, ...(extra.entries ?? [])] as unknown as Change['entries'],
})

export const nodeDecided = (
  from: Row<Node>,
  node: Node,
  entries: Change['entries'],
  extra: ChangePart = {},
): NodeDecided => ({
  ...decided({
    reads: [readOf('node', node.id, from), ...(extra.reads ?? [])],
    writes: [{ put: 'node', value: node }, ...(extra.writes ?? [])],
    entries: [...entries, ...(extra.entries ?? [])] as unknown as Change['entries'],
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
