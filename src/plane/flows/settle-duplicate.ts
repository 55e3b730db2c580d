// There are two holders of one identity: what becomes of them is committed before the refusal is told.

import type { DuplicateVerdict } from '#domain/duplicate.ts'
import type { NodeId } from '#domain/node.ts'
import type { Refusal } from '#domain/refusal.ts'
import type { CommitDeps } from './commit-decision.ts'
import { holderUnknown, type AwaitReturn } from './live-holder.ts'

export type DuplicateDeps = CommitDeps & { readonly awaitReturn: AwaitReturn }

/** `lost-race`: something has changed, or had the time to; it is to be decided again. No pace: whoever makes haste must not escape it. */
export const settleDuplicate = async (
  deps: DuplicateDeps,
  node: NodeId,
  verdict: Exclude<DuplicateVerdict, { kind: 'claimant-stays' }>,
): Promise<Refusal | 'lost-race'> => {
  if (verdict.change === null) return verdict.refusal
  // Only an operator undoes a fence. Whoever holds a copy must not be able to lay one by waiting for a plane to restart.
  const returned = verdict.kind === 'fenced' ? await deps.awaitReturn(node) : 'nothing'
  if (returned === 'unknown') return holderUnknown(node)
  if (returned === 'waited') return 'lost-race'
  const outcome = await deps.store.commit(verdict.change)
  if (outcome === 'lost-race') return outcome
  deps.feed.publish(outcome)
  return verdict.refusal
}
