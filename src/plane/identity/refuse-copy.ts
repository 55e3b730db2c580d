// Somebody asks in the name of a node, and something says that there are two who could. Which of them stays is decided
// on whether another process answers on a channel just now, and committed before the refusal is told.

import type { Attribution } from '#domain/core/decision.ts'
import { decideDuplicate, type DuplicateSign } from '#domain/identity/duplicate.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import type { AgentEvidence } from '#wire/api/agent-evidence.ts'
import { busyOver, retryLostRaces } from '#plane/core/commit-decision.ts'
import { claimantFacts, lastSeenFacts, liveHolderFacts } from './holder-facts.ts'
import { holderUnknown, type FindOtherHolder } from './live-holder.ts'
import { raiseSecondHolder } from './raise-second-holder.ts'
import { settleDuplicate, type DuplicateDeps } from './settle-duplicate.ts'

export type CopyDeps = DuplicateDeps & {
  readonly store: Store
  readonly clock: Clock
  readonly findOtherHolder: FindOtherHolder
}

export type Claim = {
  readonly node: NodeId
  /** Null: an agent that does not say who it is. */
  readonly evidence: AgentEvidence | null
  readonly source: string
  /** Of the certificate it presented; null: none. */
  readonly serial: string | null
  readonly sign: DuplicateSign
  readonly correlation: string | null
}

const tries = { tries: 8, onBusy: busyOver('node') }

/** Null: it is no copy, as far as anybody can tell. */
export const refuseCopy = (deps: CopyDeps, claim: Claim): Promise<Refusal | null> => {
  const { evidence, source, serial, sign } = claim
  const actor = `node:${claim.node}`
  const by: Attribution = { actor, source, correlation: claim.correlation }
  return retryLostRaces(tries, async () => {
    const live = await deps.findOtherHolder(claim.node, evidence === null ? null : evidence.instance)
    if (live === 'unknown') return holderUnknown(claim.node)
    const node = await deps.store.get('node', claim.node)
    const profile = node === null ? null : await deps.store.get('profile', node.value.profile)
    const domain = await deps.store.get('domain', 'domain')
    if (node === null || profile === null || domain === null) return null
    const verdict = decideDuplicate({
      ...{ node, profile, domain, sign, by, nowMs: deps.clock.nowMs() },
      claimant: claimantFacts(evidence, source, serial),
      claimantLive: false,
      otherHolder: live === null ? null : liveHolderFacts(live),
      lastSeen: lastSeenFacts(node.value, await deps.store.observation(claim.node)),
    })
    if (verdict.kind === 'claimant-stays') {
      if (verdict.suspicion === null) return null
      await raiseSecondHolder(deps, { node: claim.node, condition: 'duplicate_identity', ...verdict.suspicion, by })
      return null
    }
    const outcome = await settleDuplicate(deps, claim.node, verdict)
    return isRefusal(outcome) ? { ...outcome, about: { node: claim.node, actor } } : outcome
  })
}
