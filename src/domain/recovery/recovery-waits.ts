// A recovery that was refused until people have decided: what operators see of it.

import type { NodeDecided, NodeFacts } from '#domain/core/change.ts'
import { decideRaise, type Unchanged } from '#domain/core/conditions.ts'
import { hardwareWords } from '#domain/core/hardware-identity.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { RecoverFacts } from './recovery.ts'

export type WaitsFacts = NodeFacts & Pick<RecoverFacts, 'failure' | 'claimant'> & { readonly refusal: Refusal }

/** Shows operators that a recovery waits for an approval. Other refusals wait for no one. */
export const decideRecoveryWaits = (facts: WaitsFacts): NodeDecided | Unchanged => {
  const { node, refusal, failure, claimant, by, nowMs } = facts
  if (refusal.code !== 'APPROVAL_REQUIRED' && refusal.code !== 'RECOVERY_BUDGET_SPENT') return { kind: 'unchanged' }
  const spent = refusal.code === 'RECOVERY_BUDGET_SPENT'
  return decideRaise({
    node,
    name: 'needs_approval',
    reason: spent
      ? 'it has recovered as often as its profile allows'
      : `${refusal.detail ?? 'it asks to recover'}, and people decide about that`,
    evidence: { code: refusal.code, failure: failure.class, source: by.source, hardware: hardwareWords(claimant) },
    by,
    nowMs,
  })
}
