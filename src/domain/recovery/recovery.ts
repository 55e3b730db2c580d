// May this caller, who has no certificate that works, have a new identity for its node? Ruling 6.

import { approvalComplete, recoveryApproved } from '#domain/core/approval.ts'
import type { KeyBan } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { isFromFuture } from '#domain/core/clock-tolerance.ts'
import { issuanceBarred } from '#domain/continuity/continuity.ts'
import { decideRaise, type Unchanged } from '#domain/core/conditions.ts'
import type { Attribution } from '#domain/core/decision.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { decideDuplicate, type DuplicateVerdict, type HolderFacts } from '#domain/identity/duplicate.ts'
import type { FailureClass } from './failure-class.ts'
import { issuanceHalted } from '#domain/identity/issuance.ts'
import { livesBy } from '#domain/ca/issuer.ts'
import { keyInUse, type KeyClaimFacts, type KeyInUseFacts } from '#domain/identity/key-claim.ts'
import { keyUnfit } from '#domain/identity/key-fitness.ts'
import type { NodeDecided, NodeFacts } from '#domain/core/node-change.ts'
import { orderNodeCertificate, type KeyInRequest } from '#domain/identity/node-certificate.ts'
import type { IssuerId, Node, Slot } from '#domain/core/node.ts'
import type { SigningOrder } from '#domain/core/order.ts'
import type { Profile } from '#domain/core/profile.ts'
import {
  credentialMatches,
  oldestCounter,
  type PresentedCounter,
  type PresentedRecovery,
  type RecoveryRegistrationFacts,
} from '#domain/core/recovery-credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { slotForKey, slotsOf } from '#domain/core/slots.ts'

export type RecoverFacts = {
  readonly node: Row<Node>
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
  readonly credential: PresentedRecovery
  /** Null: none was presented. */
  readonly counter: PresentedCounter | null
  readonly key: KeyInRequest | { readonly kind: 'malformed'; readonly why: string }
  readonly keyBan: Row<KeyBan> | null
  readonly keyClaims: KeyClaimFacts
  /** Of the recovery key it is asked with. */
  readonly credentialBan: Row<KeyBan> | null
  readonly claimant: HolderFacts
  /** Another process with a live channel, which has answered a ping just now. */
  readonly otherHolder: HolderFacts | null
  /** What was last seen of the node: named where two holders are, never decided on. */
  readonly lastSeen: HolderFacts | null
  /** What made it necessary, as the agent tells it. */
  readonly failure: {
    readonly class: FailureClass
    readonly code: string
    readonly sinceMs: number
    readonly certNotAfterMs: number | null
  }
  /** Heard only with a repair bundle: every other caller has what it recovered with. */
  readonly register: RecoveryRegistrationFacts | null
  /** Authorities that are withdrawn: what they have signed is no answer to anybody. */
  readonly withdrawn: readonly IssuerId[]
  readonly orderId: string
  readonly by: Attribution
  readonly nowMs: number
}

export type RecoverVerdict =
  | Refusal
  /** Asked before by the same key: the answer is the certificate it got then. */
  | { readonly kind: 'repeat'; readonly node: Row<Node>; readonly slot: Slot }
  /** There are two; what becomes of them is to be committed before the refusal is told. */
  | { readonly kind: 'duplicate'; readonly verdict: Exclude<DuplicateVerdict, { kind: 'claimant-stays' }> }
  | AdmittedRecovery

export type AdmittedRecovery = {
  readonly kind: 'admitted'
  readonly facts: RecoverFacts
  readonly before: Node
  readonly epoch: number
  readonly order: SigningOrder
}

export const decideRecover = (facts: RecoverFacts): RecoverVerdict => {
  const { key, node } = facts
  const domain = facts.domain.value
  const stopped = issuanceBarred(domain) ?? issuanceHalted(domain, 'known')
  if (stopped !== null) return stopped
  if (key.kind === 'malformed') return refuse('CSR_INVALID', key.why)
  const repeated = repeatOf(facts, key.spkiHash)
  if (repeated !== null) return repeated
  const halted = issuanceHalted(domain, 'new')
  if (halted !== null) return halted
  if (node.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')

  const barred = facts.credential.by === 'repair' ? repairBarred(facts) : selfBarred(facts)
  if (barred !== null) return barred
  const unfit = keyUnfit({ ...facts, recovery: node.value.recovery }, key)
  return unfit ?? keyInUse(keyInUseFacts(facts, key.spkiHash)) ?? admit(facts, key)
}

/** A recovery registers a key only with a repair bundle. */
export const keyInUseFacts = (
  { node, credential, register, keyClaims: claims }: RecoverFacts,
  spki: string,
): KeyInUseFacts => {
  const { value } = node
  return { nodeId: value.id, node: value, spki, register: credential.by === 'repair' ? register : null, claims }
}

/** Same key, same credential, same answer, whatever the counter: its holder has not heard of the newer one. */
const repeatOf = (facts: RecoverFacts, spki: string): RecoverVerdict | null => {
  const { node, profile, nowMs } = facts
  const slots = slotsOf(node.value)
  if (slots === null || !credentialIsTheirs(facts)) return null
  // A lapsed certificate that would not be let in is no answer.
  if (node.value.membership.kind === 'inactive' && profile.value.comeback.by !== 'certificate') return null
  const slot = slotForKey(slots, spki, nowMs)
  return slot === null || facts.withdrawn.includes(slot.issuer) ? null : { kind: 'repeat', node, slot }
}

const credentialIsTheirs = ({ node, credential, key }: RecoverFacts): boolean => {
  const { recovery, repair } = node.value
  if (credential.by === 'repair') {
    return repair?.hash === credential.hash && key.kind === 'key' && repair.usedBy?.spki === key.spkiHash
  }
  return recovery !== null && credentialMatches(recovery.credential, credential)
}

/** An operator decided already, whoever else may hold the identity: neither counter nor budget is asked. */
const repairBarred = ({ node, domain, credential, nowMs }: RecoverFacts): Refusal | null => {
  const { repair, membership } = node.value
  if (credential.by !== 'repair' || repair?.hash !== credential.hash) return refuse('REPAIR_TOKEN_INVALID')
  if (repair.usedBy !== null) return refuse('REPAIR_TOKEN_INVALID', 'it has been used')
  if (nowMs >= repair.expiresAtMs) return refuse('REPAIR_TOKEN_INVALID', 'it has expired')
  if (isFromFuture(repair.issuedAtMs, nowMs, domain.value.clockToleranceMs))
    return refuse('REPAIR_TOKEN_INVALID', 'it was made by a clock that was ahead')
  return membership.kind === 'quarantined'
    ? null
    : refuse('REPAIR_TOKEN_INVALID', 'the node is no longer in quarantine')
}

const selfBarred = (facts: RecoverFacts): RecoverVerdict | null => {
  const { node, counter } = facts
  const { recovery, membership } = node.value
  if (recovery === null || !credentialIsTheirs(facts)) return refuse('RECOVERY_UNKNOWN')
  if (membership.kind === 'quarantined') return refuse('NODE_QUARANTINED', 'it recovers only with a repair bundle')
  if (facts.credentialBan !== null) return recoveryKeyBanned(node.value.id)
  if (recovery.denied !== null) return refuse('RECOVERY_DENIED', `${recovery.denied.by} said no`)
  if (counter === null) return refuse('REQUEST_INVALID', 'a recovery presents the counter it was last given')
  return duplicate(facts, counter) ?? notAllowed(facts)
}

/** Banned with another node that held the same key: its holder could recover as this node. */
export const recoveryKeyBanned = (node: string): Refusal =>
  refuse(
    'RECOVERY_DENIED',
    `its recovery key was banned with another node that had the same one; muster token create --node ${node} --replace`,
  )

const duplicate = (facts: RecoverFacts, { counter }: PresentedCounter): RecoverVerdict | null => {
  const old = counter < oldestCounter(facts.node.value) && !asksAgain(facts)
  if (!old && facts.otherHolder === null) return null
  const verdict = decideDuplicate({
    ...facts,
    sign: old ? 'old-counter' : 'second-instance',
    // A recovery is asked for where no channel opens any more.
    claimantLive: false,
  })
  return verdict.kind === 'claimant-stays' ? null : { kind: 'duplicate', verdict }
}

/** A request that is repeated after its answer has expired is exempt from the counter like any repeat (ruling 4). */
const asksAgain = ({ node, key }: RecoverFacts): boolean => {
  const slots = slotsOf(node.value)
  return slots !== null && key.kind === 'key' && (slots.pending ?? slots.current).spki === key.spkiHash
}

/** What the profile, its budget and people say. */
const notAllowed = ({ node, profile, withdrawn, nowMs }: RecoverFacts): Refusal | null => {
  const { mode, limit } = profile.value.recovery
  if (mode === 'deny') return refuse('RECOVERY_DENIED', `profile ${profile.value.name} lets no node recover`)
  if (recoveryApproved(node.value, profile.value)) return null
  if (mode === 'approve') return refuse('APPROVAL_REQUIRED')
  // Recovery is no way around the people who decide about a return.
  if (node.value.membership.kind === 'inactive' && !approvalComplete(node.value, profile.value)) {
    return refuse('APPROVAL_REQUIRED')
  }
  if (livesBy(node.value, withdrawn)) return null
  const spent = recoveriesInWindow(node.value, profile.value, nowMs)
  return spent < limit ? null : refuse('RECOVERY_BUDGET_SPENT', `${spent} recoveries, ${limit} are allowed`)
}

/** Those of a clock that was ahead do not count: they would for as long as it was, which may be years. */
export const recoveriesInWindow = (node: Node, { recovery }: Profile, nowMs: number): number => {
  const counts = (atMs: number): boolean => atMs > nowMs - recovery.windowMs && !isFromFuture(atMs, nowMs)
  return node.recovery === null ? 0 : node.recovery.recoveredAtMs.filter(counts).length
}

const admit = (facts: RecoverFacts, key: KeyInRequest): RecoverVerdict => {
  const before = facts.node.value
  const epoch = before.epoch + 1
  const order = orderNodeCertificate({
    id: facts.orderId,
    node: before.id,
    epoch,
    profile: facts.profile.value,
    domain: facts.domain.value,
    key,
    nowMs: facts.nowMs,
  })
  return order.kind === 'refused' ? order : { kind: 'admitted', facts, before, epoch, order: order.order }
}

export type WaitsFacts = NodeFacts & Pick<RecoverFacts, 'failure'> & { readonly refusal: Refusal }

/** So that whoever could approve a recovery sees that it waits. Other refusals wait for nobody. */
export const decideRecoveryWaits = (facts: WaitsFacts): NodeDecided | Unchanged => {
  const { node, refusal, failure, by, nowMs } = facts
  if (refusal.code !== 'APPROVAL_REQUIRED' && refusal.code !== 'RECOVERY_BUDGET_SPENT') return { kind: 'unchanged' }
  const spent = refusal.code === 'RECOVERY_BUDGET_SPENT'
  return decideRaise({
    node,
    name: 'needs_approval',
    reason: spent
      ? 'it has recovered as often as its profile allows'
      : 'it asks to recover, and people decide about that',
    evidence: { code: refusal.code, failure: failure.class, source: by.source },
    by,
    nowMs,
  })
}
