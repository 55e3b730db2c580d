// A rehearsal goes through a whole recovery while nothing is wrong, and changes only what is known of the node: that it would
// recover without an operator, or what would prevent it.

import { recoveryApproved } from '#domain/core/approval.ts'
import {
  readOf,
  type Row,
  boundedText,
  entry,
  nodeDecided,
  type ChangePart,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import { hasCondition, withCondition, withoutConditions, type Unchanged } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { HardwareIdentity, Node, Rehearsal, RehearsalStep } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import {
  credentialMatches,
  oldestCounter,
  type PresentedCounter,
  type PresentedRecovery,
} from '#domain/core/recovery-credential.ts'
import { recoveriesInWindow } from './recovery.ts'
import { hasMoved } from '#domain/core/reported-hardware.ts'
import { slotsOf } from '#domain/core/certificate.ts'

export type RehearseFacts = NodeFacts & {
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
  readonly credential: PresentedRecovery
  readonly counter: PresentedCounter | null
  /** As the machine reports it. */
  readonly hardware: HardwareIdentity
  /** What the agent found before the plane answered. */
  readonly diskReserve: boolean
  readonly clockSkewMs: number
}

export type RehearsalVerdict = {
  readonly outcome: Rehearsal['outcome']
  readonly step: RehearsalStep | null
  readonly why: string | null
  /** Null: known already, or not to be believed. */
  readonly decided: NodeDecided | null
}

type Failing = { readonly step: RehearsalStep; readonly why: string }

export const decideRehearsal = (facts: RehearseFacts): RehearsalVerdict => {
  const { node, profile, domain } = facts
  const stranger = notTheNode(facts)
  // A caller that cannot prove the node's identity must not be able to report that the node could not recover.
  if (stranger !== null) return { outcome: 'failed', ...stranger, decided: null }
  const failing = failingStep(facts)
  const { value } = node
  const extra = { reads: [readOf('profile', profile.value.name, profile), readOf('domain', 'domain', domain)] }
  const decided = isKnown(value, failing) ? null : rehearsedAs(facts, failing, extra)
  return failing === null
    ? { outcome: 'passed', step: null, why: null, decided }
    : { outcome: 'failed', ...failing, decided }
}

const notTheNode = ({ node, credential }: RehearseFacts): Failing | null => {
  const { membership, recovery } = node.value
  if (membership.kind === 'revoked') return { step: 'proof', why: 'NODE_REVOKED' }
  if (recovery === null || !credentialMatches(recovery.credential, credential)) {
    return { step: 'proof', why: 'RECOVERY_UNKNOWN' }
  }
  return slotsOf(node.value) === null && membership.kind === 'quarantined'
    ? { step: 'proof', why: 'NODE_QUARANTINED' }
    : null
}

/** In the order a recovery would meet them. */
const failingStep = (facts: RehearseFacts): Failing | null => {
  const { node, counter, profile, domain, nowMs } = facts
  if (counter === null || counter.node !== node.value.id || counter.counter < oldestCounter(node.value)) {
    return { step: 'counter', why: 'DUPLICATE_IDENTITY' }
  }
  const budget = budgetOf(node.value, profile.value, facts.hardware, nowMs)
  if (budget !== null) return { step: 'budget', why: budget }
  if (!facts.diskReserve) return { step: 'disk', why: 'disk_full' }
  if (Math.abs(facts.clockSkewMs) > domain.value.clockToleranceMs) return { step: 'clock', why: 'clock_skew' }
  return null
}

/** What the plane knows of the process that presents a counter. */
export type CounterSender = {
  /** It was the last to have a channel with the node's current certificate, so the newer counter is its own. */
  readonly hasCurrent: boolean
  /** It has a channel open, with whichever certificate. */
  readonly connected: boolean
}

/**
 * An old counter is a sign of a copy only if another holder has the newer one. `overtaken`: a renewal has overtaken a request of
 * the holder itself, or the newer counter is unused. Neither is a sign of a copy. `not-kept`: the node has reported that it could
 * not keep the newer one.
 */
export type CounterVerdict = 'good' | 'overtaken' | 'not-kept' | 'second-holder'

export const judgeCounter = (
  node: Node,
  counter: PresentedCounter | null,
  sender: CounterSender,
  nowMs: number,
): CounterVerdict => {
  if (!hasOldCounter(node, counter)) return 'good'
  if (hasCondition(node, 'not_persisted')) return 'not-kept'
  return sender.hasCurrent || (counter.counter === node.counter - 1 && isChanging(node, sender, nowMs))
    ? 'overtaken'
    : 'second-holder'
}

/** Of another node, or none: that fails the rehearsal, and is no sign of a copy of this one. */
export const hasOldCounter = (node: Node, counter: PresentedCounter | null): counter is PresentedCounter =>
  counter !== null && counter.node === node.id && counter.counter < oldestCounter(node)

/**
 * The newest certificate has not been used, or it was used a moment ago and the sender's channel with its predecessor is
 * still open: no process but the one that has rotated may open a channel with a certificate that drains.
 */
const isChanging = ({ membership }: Node, { connected }: CounterSender, nowMs: number): boolean => {
  if (membership.kind === 'enrolled') return true
  return membership.kind === 'active' && connected && (membership.slots.retired?.untilMs ?? 0) > nowMs
}

/** Under `approve` operators would be asked: that is intended, and the rehearsal passes. */
const budgetOf = (node: Node, profile: Profile, hardware: HardwareIdentity, nowMs: number): string | null => {
  if (profile.recovery.mode === 'deny' || (node.recovery !== null && node.recovery.denied !== null))
    return 'RECOVERY_DENIED'
  if (profile.recovery.mode === 'approve' || recoveryApproved(node, profile)) return null
  // In quarantine the checks of the repair look at the hardware.
  if (node.membership.kind !== 'quarantined' && hasMoved(node, hardware)) return 'APPROVAL_REQUIRED'
  return recoveriesInWindow(node, profile, nowMs) < profile.recovery.limit ? null : 'RECOVERY_BUDGET_SPENT'
}

export type RehearsalReportedFacts = NodeFacts &
  Failing & {
    /** When it failed, by the agent's clock. */
    readonly atMs: number
  }

/** What only the agent could see: it did not get as far as the plane, and says so over its channel. */
export const decideRehearsalReported = (facts: RehearsalReportedFacts): NodeDecided | Unchanged => {
  const { node, step, atMs } = facts
  const failing = { step, why: boundedText(facts.why, 64) }
  if (slotsOf(node.value) === null || isKnown(node.value, failing) || hasPassedSince(node.value, atMs)) {
    return { kind: 'unchanged' }
  }
  return rehearsedAs(facts, failing)
}

/**
 * The report was on its way while a later rehearsal passed. Nothing would end the condition before the next rehearsal, a day later. A
 * clock that is behind the plane's, within the tolerance, can hide a failure right after a pass: it is rehearsed again 15 minutes later.
 */
const hasPassedSince = ({ rehearsal, epoch }: Node, atMs: number): boolean =>
  rehearsal?.outcome === 'passed' && rehearsal.epoch === epoch && atMs < rehearsal.sinceMs

const isKnown = ({ rehearsal, epoch }: Node, failing: Failing | null): boolean => {
  if (rehearsal === null || rehearsal.epoch !== epoch) return false
  if (rehearsal.outcome === 'passed') return failing === null
  return failing !== null && rehearsal.step === failing.step && rehearsal.why === failing.why
}

const rehearsedAs = ({ node, by, nowMs }: NodeFacts, failing: Failing | null, extra: ChangePart = {}): NodeDecided => {
  const { value } = node
  const { id, epoch } = value
  const others = withoutConditions(value.conditions, ['not_recoverable'])
  if (failing === null) {
    const rehearsal: Rehearsal = { outcome: 'passed', sinceMs: nowMs, epoch }
    const entries = [entry(by, nowMs, 'node.recoverable', { node: id, epoch })] as const
    return nodeDecided(node, { ...value, rehearsal, conditions: others }, entries, extra)
  }
  const rehearsal: Rehearsal = { outcome: 'failed', sinceMs: nowMs, epoch, ...failing }
  const conditions = withCondition(others, {
    name: 'not_recoverable',
    sinceMs: nowMs,
    reason: `its recovery rehearsal failed at the step ${failing.step}: ${failing.why}`,
    evidence: { step: failing.step, why: failing.why },
  })
  const entries = [entry(by, nowMs, 'node.unrecoverable', { node: id, epoch }, failing)] as const
  return nodeDecided(node, { ...value, rehearsal, conditions }, entries, extra)
}
