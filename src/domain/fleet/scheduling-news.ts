// Which entries of the journal a scheduler looks up a node for. Everything about a node that is not known to leave its
// scheduling as it was: a kind of entry that is added later is looked up once too often, never missed.

import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'

const leavesSchedulingAlone: ReadonlySet<EntryType> = new Set<EntryType>([
  'enrollment_token.created',
  'enrollment_token.used',
  'enrollment_token.revoked',
  'node.recovery_requested',
  'node.repair_evidence',
  'node.recoverable',
  'node.unrecoverable',
  'alert.raised',
  'alert.acknowledged',
  'alert.resolved',
  'refused',
  'refusals.counted',
  'receipt.effective',
  'receipt.settled',
])

export const isSchedulingNews = ({ node, type }: Pick<JournalEntry, 'node' | 'type'>): boolean =>
  node !== null && !leavesSchedulingAlone.has(type)

const changesAssignment: ReadonlySet<EntryType> = new Set<EntryType>([
  'node.assigned',
  'node.unassigned',
  'node.moved',
  'host.revoked',
])

/** Whoever watches one vCluster hears of this too: the node may just have left it. */
export const mayHaveLeft = ({ type }: Pick<JournalEntry, 'type'>): boolean => changesAssignment.has(type)
