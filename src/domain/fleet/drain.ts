// Draining: nothing new is placed on a node, and the owners of its work are asked to move it. The last allocation that ends
// completes the drain (allocation.ts); a node without work is drained at once.

import { askForAll, letAllStay, type AllocationsFacts } from './allocation.ts'
import { boundedText, entry, nodeDecided, type ChangePart, type NodeDecided } from '#domain/core/change.ts'
import { counted } from '#domain/core/in-words.ts'
import type { EntryDraft, EntryType } from '#domain/core/journal-entry.ts'
import type { Node } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export const decideDrain = (facts: AllocationsFacts): NodeDecided | Refusal => {
  const { node, allocations } = facts
  if (node.value.drain !== 'none') return unfit(node.value)
  if (allocations.length === 0) {
    const entries = [said(facts, 'node.draining', 'none'), said(facts, 'node.drained', 'draining')] as const
    return drainTo(facts, 'drained', entries)
  }
  const asked = askForAll(facts, `${node.value.id} drains`)
  return drainTo(facts, 'draining', [said(facts, 'node.draining', 'none')], asked)
}

/** An operator says that nothing runs on the node any more. Recorded allocations are released by their owners. */
export const decideDrained = (facts: AllocationsFacts): NodeDecided | Refusal => {
  const { node, allocations } = facts
  if (node.value.drain !== 'draining') return unfit(node.value)
  if (allocations.length > 0 && node.value.membership.kind !== 'revoked') {
    const { id } = node.value
    const named = allocations.slice(0, 5).map(({ value }) => value.id)
    return refuse(
      'NODE_STATE_CONFLICT',
      boundedText(
        `${counted(allocations.length, 'allocation is', 'allocations are')} still on ${id}, among them ${named.join(', ')}: see muster allocation list --node ${id}, then muster allocation release ID`,
      ),
    )
  }
  return drainTo(facts, 'drained', [said(facts, 'node.drained', 'draining')])
}

export const decideUndrain = (facts: AllocationsFacts): NodeDecided | Refusal => {
  const { drain } = facts.node.value
  if (drain === 'none') return unfit(facts.node.value)
  return drainTo(facts, 'none', [said(facts, 'node.undrained', drain)], letAllStay(facts))
}

const drainTo = (
  { node }: AllocationsFacts,
  drain: Node['drain'],
  entries: readonly [EntryDraft, ...EntryDraft[]],
  extra: ChangePart = {},
): NodeDecided | Refusal =>
  node.value.membership.kind === 'revoked'
    ? refuse('NODE_REVOKED')
    : nodeDecided(node, { ...node.value, drain }, entries, extra)

const said = ({ node, by, nowMs }: AllocationsFacts, type: EntryType, was: Node['drain']): EntryDraft =>
  entry(by, nowMs, type, { node: node.value.id, epoch: node.value.epoch }, { was })

const unfit = (node: Node): Refusal => {
  if (node.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  return refuse(
    'NODE_STATE_CONFLICT',
    node.drain === 'none' ? `${node.id} is not draining` : `${node.id} is ${node.drain} already`,
  )
}
