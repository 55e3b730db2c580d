// The ceremony of a recovery, dry: the same proof, the same questions, and nothing is signed or counted. What it showed is
// committed where that is news.

import type { Row } from '#domain/change.ts'
import type { Attribution } from '#domain/decision.ts'
import { suspicionOf } from '#domain/duplicate.ts'
import type { Node, NodeId, RehearsalStep } from '#domain/node.ts'
import { decideRehearsal, hasOldCounter } from '#domain/rehearsal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/refusal.ts'
import type { Store } from '#plane/store/store.ts'
import type { AgentEvidence } from '#wire/agent-evidence.ts'
import type { RehearseRequest } from '#wire/recovery-api.ts'
import type { AdmissionQueue } from './admission-queue.ts'
import { claimantFacts } from './holder-facts.ts'
import type { ChallengeDeps } from './issue-challenge.ts'
import type { NodePace } from './node-pace.ts'
import { recoveryKeyBanned } from '#domain/recovery.ts'
import { credentialBan } from './key-claims.ts'
import { proveRecovery } from './prove-recovery.ts'
import { raiseSecondHolder } from './raise-second-holder.ts'
import { refuseCopy, type CopyDeps } from './refuse-copy.ts'
import { readCounter } from './signed-counter.ts'
import type { StrangersBudget } from './strangers-budget.ts'

export type RehearseDeps = ChallengeDeps &
  CopyDeps & {
    readonly store: Store
    readonly strangers: StrangersBudget
    readonly admission: AdmissionQueue
    readonly pace: NodePace
    /** Counts them. */
    readonly onRehearsal: (outcome: 'passed' | 'failed') => void
  }

export type RehearseCall = {
  readonly node: NodeId
  readonly credential: RehearseRequest['credential']
  readonly counter: string
  readonly evidence: AgentEvidence
  readonly diskReserve: boolean
  readonly clockSkewMs: number
  readonly source: string
  readonly correlation: string
}

export type Rehearsed = {
  readonly kind: 'rehearsed'
  readonly outcome: 'passed' | 'failed'
  readonly step: RehearsalStep | null
  readonly why: string | null
}

export const rehearseRecovery = async (deps: RehearseDeps, call: RehearseCall): Promise<Rehearsed | Refusal> => {
  const node = await deps.store.get('node', call.node)
  const credential = proveRecovery(deps, node, { ...call, purpose: 'rehearse', csr: null })
  if (isRefusal(credential)) {
    const about = { node: node === null ? null : node.value.id }
    if (deps.strangers.room(call.source)) return { ...credential, about }
    return { ...refuse('RATE_LIMITED'), retryAfterMs: deps.strangers.retryAfterMs(), about }
  }
  const about = { node: call.node, actor: `node:${call.node}` }
  const leave = deps.admission.enter()
  if (typeof leave !== 'function') return { ...leave, about }
  try {
    const outcome = await rehearse(deps, call, credential)
    return outcome.kind === 'refused' ? { ...outcome, about } : outcome
  } finally {
    leave()
  }
}

const mostTries = 16

const rehearse = async (
  deps: RehearseDeps,
  call: RehearseCall,
  credential: Exclude<ReturnType<typeof proveRecovery>, Refusal>,
): Promise<Rehearsed | Refusal> => {
  const { store, clock } = deps
  const counter = readCounter(deps, call.counter, call.node)
  if (isRefusal(counter)) return counter
  const { source, evidence, correlation } = call
  // A copy must not be able to say how the one that is connected would fare, nor use up what that one may write.
  const copy = await refuseCopy(deps, {
    ...{ node: call.node, source, evidence, correlation },
    serial: null,
    sign: 'second-instance',
  })
  if (copy !== null) return copy
  if ((await credentialBan(deps.store, credential)) !== null) return recoveryKeyBanned(call.node)
  const by = { actor: `node:${call.node}`, source, correlation }
  for (let attempt = 0; attempt < mostTries; attempt++) {
    const node = await store.get('node', call.node)
    const profile = node === null ? null : await store.get('profile', node.value.profile)
    const domain = await store.get('domain', 'domain')
    if (node === null || profile === null || domain === null) return refuse('RECOVERY_UNKNOWN')
    const { diskReserve, clockSkewMs } = call
    const nowMs = clock.nowMs()
    const facts = { node, profile, domain, credential, counter, diskReserve, clockSkewMs, by, nowMs }
    const { decided, outcome, step, why } = decideRehearsal(facts)
    if (decided !== null) {
      const wait = deps.pace.hurry(call.node)
      if (wait !== null) return wait
      const committed = await store.commit(decided.change)
      if (committed === 'lost-race') continue
      deps.feed.publish(committed)
    }
    if (hasOldCounter(node.value, counter)) await alarm(deps, node, call, by)
    store.observe(call.node, { rehearsedAtMs: nowMs })
    deps.onRehearsal(outcome)
    return { kind: 'rehearsed', outcome, step, why }
  }
  return { ...refuse('BUSY', 'many changes to the same node at once'), retryAfterMs: 1000 }
}

/** Of the process that rehearses: it is connected, and yet another has been here with a newer counter. */
const alarm = async (deps: RehearseDeps, node: Row<Node>, call: RehearseCall, by: Attribution): Promise<void> => {
  const claimant = claimantFacts(call.evidence, call.source, null)
  const suspicion = suspicionOf({ node, sign: 'old-counter', claimant, otherHolder: null, lastSeen: null })
  await raiseSecondHolder(deps, { node: call.node, condition: 'duplicate_identity', ...suspicion, by })
}
