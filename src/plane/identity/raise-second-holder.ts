// Writes down that somebody else uses, or wants, a node's identity. Best effort by design: it never fails the request
// that betrayed it, which is refused anyway.

import type { Attribution } from '#domain/core/decision.ts'
import type { Condition, NodeId } from '#domain/core/node.ts'
import { decideSecondHolder, type SecondHolderFacts } from '#domain/identity/second-holder.ts'
import type { Clock } from '#platform/clock.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { busyOver, commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'

export type SecondHolder = {
  readonly node: NodeId
  readonly condition: SecondHolderFacts['condition']
  readonly reason: string
  readonly evidence: Condition['evidence']
  readonly by: Attribution
}

export const raiseSecondHolder = async (
  deps: CommitDeps & { readonly store: Store; readonly clock: Clock },
  holder: SecondHolder,
): Promise<void> => {
  const decide = async () => {
    const node = await deps.store.get('node', holder.node)
    if (node === null) return { kind: 'known' } as const
    return decideSecondHolder({ ...holder, node, nowMs: deps.clock.nowMs() })
  }
  await commitDecision(deps, decide, { tries: 4, onBusy: busyOver('node') })
}
