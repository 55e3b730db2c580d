// A rehearsal: the same credential and the same checks as a recovery, and nothing is signed or counted. The result is committed
// where it changes.

import type { Row, Attribution } from '#domain/core/change.ts'
import { suspicionOf } from '#domain/identity/duplicate.ts'
import type { Node, NodeId, RehearsalStep } from '#domain/core/node.ts'
import { recoveryKeyBanned } from '#domain/recovery/recovery.ts'
import type { PresentedCounter } from '#domain/core/recovery-credential.ts'
import { decideRehearsal, hasOldCounter, judgeCounter, type CounterVerdict } from '#domain/recovery/rehearsal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { RehearseRequest } from '#wire/recovery/recovery-api.ts'
import { commitOnce, nodeTries, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { AdmissionQueue } from '#plane/limits/admission-queue.ts'
import { readCounter } from '#plane/identity/request-proofs.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import { credentialBan, proveRecovery } from './prove-recovery.ts'
import { holderUnknown } from '#plane/identity/holders.ts'
import { callerFacts, type SecondHolders } from '#plane/identity/second-holder.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'

export type RehearseParts = {
  readonly recovery: RecoveryAuthority
  readonly domainName: string
  readonly anonymousBudget: CallerBudget
  readonly admission: AdmissionQueue
  readonly writeLimit: WriteLimit
  readonly secondHolders: Pick<SecondHolders, 'refuseCopy' | 'isConnected' | 'isCurrent' | 'report'>
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

export const rehearseRecovery = async (
  core: FlowCore,
  parts: RehearseParts,
  call: RehearseCall,
): Promise<Rehearsed | Refusal> => {
  const node = await core.store.get('node', call.node)
  const credential = proveRecovery(core.clock, parts, node, { ...call, purpose: 'rehearse', csr: null })
  if (isRefusal(credential)) {
    const about = { node: node === null ? null : node.value.id }
    if (parts.anonymousBudget.room(call.source)) return { ...credential, about }
    return { ...refuse('RATE_LIMITED'), retryAfterMs: parts.anonymousBudget.retryAfterMs(), about }
  }
  const about = { node: call.node, actor: `node:${call.node}` }
  const leave = parts.admission.enter()
  if (typeof leave !== 'function') return { ...leave, about }
  try {
    const outcome = await rehearse(core, parts, call, credential)
    return outcome.kind === 'refused' ? { ...outcome, about } : outcome
  } finally {
    leave()
  }
}

const rehearse = async (
  core: FlowCore,
  parts: RehearseParts,
  call: RehearseCall,
  credential: Exclude<ReturnType<typeof proveRecovery>, Refusal>,
): Promise<Rehearsed | Refusal> => {
  const { store, clock } = core
  const counter = readCounter(parts, call.counter, call.node)
  if (isRefusal(counter)) return counter
  const { source, evidence, correlation } = call
  // A copy must not be able to say how the one that is connected would fare, nor use up what that one may write.
  const caller = { node: call.node, source, evidence, correlation, serial: null }
  const copy = await parts.secondHolders.refuseCopy(caller, 'second-instance')
  if (copy !== null) return copy
  if ((await credentialBan(core.store, credential)) !== null) return recoveryKeyBanned(call.node)
  const by = { actor: `node:${call.node}`, source, correlation }
  return retryLostRaces(nodeTries, async () => {
    const node = await store.get('node', call.node)
    const profile = node === null ? null : await store.get('profile', node.value.profile)
    const domain = await store.get('domain', 'domain')
    if (node === null || profile === null || domain === null) return refuse('RECOVERY_UNKNOWN')
    const { diskReserve, clockSkewMs } = call
    const nowMs = clock.nowMs()
    const hardware = callerFacts(evidence, source, null)
    const facts = { node, profile, domain, credential, counter, hardware, diskReserve, clockSkewMs, by, nowMs }
    const { decided, outcome, step, why } = decideRehearsal(facts)
    const sent = await senderVerdict(core, parts, node.value, counter, evidence.instance)
    if (sent === 'unknown') return holderUnknown(call.node)
    // It fails only because its holder has replaced the counter meanwhile: the next rehearsal shows the result.
    if (sent === 'overtaken') return { kind: 'rehearsed', outcome, step, why }
    if (decided !== null) {
      const wait = parts.writeLimit.take(call.node)
      if (wait !== null) return wait
      const committed = await commitOnce(core, decided.change)
      if (committed === 'lost-race') return committed
    }
    if (sent === 'second-holder') await alarm(parts.secondHolders, node, call, by)
    store.observe(call.node, { rehearsedAtMs: nowMs })
    parts.onRehearsal(outcome)
    return { kind: 'rehearsed', outcome, step, why }
  })
}

const senderVerdict = async (
  core: FlowCore,
  parts: RehearseParts,
  node: Node,
  counter: PresentedCounter | null,
  instance: string,
): Promise<CounterVerdict | 'unknown'> => {
  if (!hasOldCounter(node, counter)) return 'good'
  const hasCurrent = await parts.secondHolders.isCurrent(node, instance)
  if (hasCurrent === 'unknown') return hasCurrent
  const connected = await parts.secondHolders.isConnected(node.id, instance)
  return judgeCounter(node, counter, { hasCurrent, connected }, core.clock.nowMs())
}

/** Of the process that rehearses: it is connected, and yet another has been here with a newer counter. */
const alarm = async (
  secondHolders: RehearseParts['secondHolders'],
  node: Row<Node>,
  call: RehearseCall,
  by: Attribution,
): Promise<void> => {
  const claimant = callerFacts(call.evidence, call.source, null)
  const suspicion = suspicionOf({ node, sign: 'old-counter', claimant, otherHolder: null, lastSeen: null })
  await secondHolders.report({ node: call.node, condition: 'duplicate_identity', ...suspicion, by })
}
