// May this caller, who has no certificate that works, have a new identity for its node? Ruling 6.

import { approvalComplete, recoveryApproved } from '#domain/core/approval.ts'
import {
  slotOf,
  type CertificateRow,
  type IssuedCertificate,
  type KeyBan,
  isFromFuture,
  denialOfEpoch,
  slotForKey,
  slotsOf,
  livesBy,
} from '#domain/core/certificate.ts'
import { readOf, type Change, type Read, type Row, boundedText, entry } from '#domain/core/change.ts'
import { hasCondition, withoutConditions } from '#domain/core/conditions.ts'
import { decideDuplicate, holderWords, type DuplicateVerdict, type HolderFacts } from '#domain/identity/duplicate.ts'
import { keyInUse, type KeyInUseFacts } from '#domain/identity/key-claim.ts'
import {
  admit,
  certificateOf,
  certificateWords,
  intended,
  issuanceStopped,
  keyUnfit,
  recorded,
  type Admitted,
  type Intended,
  type IssueFacts,
  type Recorded,
  type Repeated,
} from '#domain/identity/node-certificate.ts'
import type { Membership, Node, Recovery, Slots, FailureClass } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import {
  credentialMatches,
  heldBy,
  oldestCounter,
  registeredRecovery,
  rotated,
  type PresentedCounter,
  type PresentedRecovery,
  type RecoveryRegistrationFacts,
  type NextBearerHash,
} from '#domain/core/recovery-credential.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { hardwareFor, hasMoved, knownHardware } from '#domain/core/reported-hardware.ts'
import { isoTime } from '#platform/clock.ts'
import { repairBarred, usedRepair } from './repair.ts'

export type RecoverFacts = IssueFacts & {
  readonly node: Row<Node>
  readonly credential: PresentedRecovery
  /** Null: none was presented. */
  readonly counter: PresentedCounter | null
  /** Of the recovery key it is asked with. */
  readonly credentialBan: Row<KeyBan> | null
  readonly claimant: HolderFacts
  /** Another process with a live channel, which has answered a ping just now. */
  readonly otherHolder: HolderFacts | null
  /** What was last seen of the node: named where two holders are, never decided on. */
  readonly lastSeen: HolderFacts | null
  /** What made it necessary, as the agent reports it. */
  readonly failure: {
    readonly class: FailureClass
    readonly code: string
    readonly sinceMs: number
    readonly certNotAfterMs: number | null
  }
  /** Used only with a repair bundle: every other caller keeps the credential it recovered with. */
  readonly register: RecoveryRegistrationFacts | null
}

export type RecoverVerdict =
  | Refusal
  | Repeated
  /** There are two holders; the consequence has to be committed before the refusal is answered. */
  | { readonly kind: 'duplicate'; readonly verdict: Exclude<DuplicateVerdict, { kind: 'claimant-stays' }> }
  | AdmittedRecovery

export type AdmittedRecovery = Admitted<RecoverFacts>

export const decideRecover = (facts: RecoverFacts): RecoverVerdict => {
  const { key, node } = facts
  const domain = facts.domain.value
  const stopped = issuanceStopped(domain, 'known')
  if (stopped !== null) return stopped
  if (key.kind === 'malformed') return refuseField('CSR_INVALID', 'csr', key.why)
  const repeated = repeatOf(facts, key.spkiHash)
  if (repeated !== null) return repeated
  const halted = issuanceStopped(domain, 'new')
  if (halted !== null) return halted
  if (node.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')

  const barred = facts.credential.by === 'repair' ? repairBarred(facts, facts.credential.hash) : selfBarred(facts)
  if (barred !== null) return barred
  const unfit = keyUnfit(facts, key, { recovery: node.value.recovery, register: facts.register })
  const inUse = unfit ?? keyInUse(keyInUseFacts(facts, key.spkiHash))
  return inUse ?? admit(facts, key, node.value, node.value.epoch + 1)
}

/** A recovery registers a key only with a repair bundle. */
const keyInUseFacts = (
  { node, credential, register, keyClaims: claims }: RecoverFacts,
  spki: string,
): KeyInUseFacts => {
  const { value } = node
  return { nodeId: value.id, node: value, spki, register: credential.by === 'repair' ? register : null, claims }
}

/** The same key and credential get the same answer with any counter: the holder has not received the newer one. */
const repeatOf = (facts: RecoverFacts, spki: string): RecoverVerdict | null => {
  const { node, profile, nowMs } = facts
  const slots = slotsOf(node.value)
  if (slots === null || !credentialIsTheirs(facts)) return null
  // A lapsed certificate that would not be let in is no answer.
  if (node.value.membership.kind === 'inactive' && profile.value.comeback.by !== 'certificate') return null
  const slot = slotForKey(slots, spki, nowMs)
  if (slot === null || facts.withdrawn.includes(slot.issuer)) return null
  return { kind: 'repeat', facts, node: node.value, slot, spends: null }
}

const credentialIsTheirs = ({ node, credential, key }: RecoverFacts): boolean => {
  const { recovery, repair } = node.value
  if (credential.by === 'repair') {
    return repair?.hash === credential.hash && key.kind === 'key' && repair.usedBy?.spki === key.spkiHash
  }
  return recovery !== null && credentialMatches(recovery.credential, credential)
}

const selfBarred = (facts: RecoverFacts): RecoverVerdict | null => {
  const { node, counter } = facts
  const { recovery, membership } = node.value
  if (recovery === null || !credentialIsTheirs(facts)) return refuse('RECOVERY_UNKNOWN')
  if (membership.kind === 'quarantined') return refuse('NODE_QUARANTINED', 'it recovers only with a repair bundle')
  if (facts.credentialBan !== null) return recoveryKeyBanned(node.value.id)
  if (recovery.denied !== null) return refuse('RECOVERY_DENIED', `${recovery.denied.by} said no`)
  if (counter === null)
    return refuseField('REQUEST_INVALID', 'counter', 'a recovery presents the counter it was last given')
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
    // An agent asks for a recovery only when it cannot open a channel.
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
const notAllowed = (facts: RecoverFacts): Refusal | null => {
  const { node, profile, withdrawn, nowMs } = facts
  const { mode, limit } = profile.value.recovery
  if (mode === 'deny') return refuse('RECOVERY_DENIED', `profile ${profile.value.name} lets no node recover`)
  if (recoveryApproved(node.value, profile.value)) return null
  const moved = hasMoved(node.value, facts.claimant) ? 'it asks from other hardware than it was enrolled with' : null
  if (mode === 'approve' || moved !== null) return refuse('APPROVAL_REQUIRED', moved)
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

/**
 * They were about the identity that ended. Suspicions stay for an operator to judge; what the agent reports, and that it
 * could not keep what it was given, it takes back itself.
 */
const ended = [
  'stuck_enrollment',
  'cert_expiring',
  'cert_expired',
  'needs_approval',
  'recovery_enrollment_blocked',
  'not_recoverable',
] as const

/** What is committed with the order to an outside issuer. */
export const intendRecovery = (recovery: AdmittedRecovery, spki: string): Intended => {
  const { facts } = recovery
  return intended(recovery, facts.node, keyInUseFacts(facts, spki), { reads: bansReliedOn(facts), writes: [] })
}

/** A revocation of another node with the same recovery key bans it, and does not write this node. */
const bansReliedOn = ({ credential }: RecoverFacts): readonly Read[] =>
  credential.by === 'key' ? [readOf('key-ban', credential.spki, null)] : []

/**
 * A new epoch, and the end of the old one, in one change. `nextBearerHash` is used where the node recovers by a bearer token.
 */
export const recordRecovery = (
  recovery: AdmittedRecovery,
  issued: IssuedCertificate,
  nextBearerHash: NextBearerHash,
): Recorded => {
  const { facts, before, epoch } = recovery
  const { domain, credential, nowMs } = facts
  const certificate = certificateOf(recovery, issued, null)
  const slots: Slots = { current: slotOf(certificate), pending: null, retired: null }
  const node: Node = {
    ...before,
    epoch,
    counter: before.counter + 1,
    membership: membershipAfter(before.membership, slots, nowMs),
    conditions: withoutConditions(before.conditions, ended),
    approvals: [],
    recovery: recoveryAfter(recovery, nextBearerHash),
    ...hardwareAfter(recovery),
    repair: credential.by === 'repair' ? usedRepair(before.repair, { spki: issued.spki, epoch, atMs: nowMs }) : null,
    rehearsal: null,
  }
  const denial = denialOfEpoch(before, {
    toleranceMs: domain.value.clockToleranceMs,
    atMs: nowMs,
    why: 'superseded by a recovery',
    reason: 'superseded',
  })
  return recorded(recovery, { before: facts.node, node, certificate }, keyInUseFacts(facts, issued.spki), {
    reads: bansReliedOn(facts),
    writes: denial === null ? [] : [{ put: 'denial', value: denial }],
    entries: entriesOf(recovery, certificate, node),
  })
}

/**
 * A repaired machine has to show the hardware that was known before (repair.ts), so that stays the known one. Of two holders the
 * operator has chosen the one that the bundle was brought to.
 */
const hardwareAfter = ({ facts, before, epoch }: AdmittedRecovery): Pick<Node, 'reportedHardware'> => {
  const known = knownHardware(before)
  const isRepaired = facts.credential.by === 'repair' && !hasCondition(before, 'duplicate_identity')
  return hardwareFor(epoch, isRepaired && known !== null ? known : facts.claimant, known)
}

/** A repaired node stays in quarantine; its certificate opens a channel for evidence. */
const membershipAfter = (before: Membership, slots: Slots, nowMs: number): Membership =>
  before.kind === 'quarantined' ? { ...before, slots } : { kind: 'enrolled', sinceMs: nowMs, slots }

const recoveryAfter = ({ facts, before }: AdmittedRecovery, nextBearerHash: NextBearerHash): Recovery | null => {
  const { credential, register, profile, by, nowMs } = facts
  const anew = credential.by === 'repair' ? registeredRecovery(register, profile.value, nextBearerHash, nowMs) : null
  if (anew !== null) return { ...anew, episode: by.correlation }
  const { recovery } = before
  // What two holders had is not left to either of them.
  const shared = credential.by === 'repair' && hasCondition(before, 'duplicate_identity')
  if (recovery === null || shared) return null
  // A repair by an operator costs no budget, and neither does the recovery of a node whose authority was withdrawn.
  const isFree = credential.by === 'repair' || livesBy(before, facts.withdrawn)
  return {
    credential: rotated(heldBy(recovery.credential, credential), nextBearerHash),
    recoveredAtMs: isFree ? recovery.recoveredAtMs : historyWith(recovery, profile.value, nowMs),
    denied: null,
    episode: by.correlation,
  }
}

const historyWith = (recovery: Recovery, profile: Profile, nowMs: number): readonly number[] => {
  const { windowMs, limit } = profile.recovery
  return [...recovery.recoveredAtMs.filter((atMs) => atMs > nowMs - windowMs), nowMs].slice(-Math.max(1, limit))
}

const entriesOf = (recovery: AdmittedRecovery, certificate: CertificateRow, node: Node): Change['entries'] => {
  const { facts, before, epoch } = recovery
  const { by, nowMs, failure, credential, claimant, profile } = facts
  const { issuer, serial } = certificate
  const failed = {
    failure_class: causeOf(facts),
    failure_code: boundedText(failure.code, 64),
    failed_since: isoTime(failure.sinceMs),
    cert_not_after: failure.certNotAfterMs === null ? null : isoTime(failure.certNotAfterMs),
  }
  const counter = facts.counter === null ? null : facts.counter.counter
  const repaired = credential.by === 'repair' ? repairCause(before) : {}
  const asked = { credential: credential.by, counter, ...failed, ...repaired }
  const was = before.membership.kind
  const superseded = was === 'active' ? 'an active identity' : 'a lapsed identity'
  const about = { node: before.id, epoch: before.epoch }
  const supersedes = entry(by, nowMs, 'node.superseded', about, { was, superseded, by_epoch: epoch })
  const done = entry(
    by,
    nowMs,
    credential.by === 'repair' ? 'node.repaired' : 'node.recovered',
    { node: before.id, epoch, issuer, serial },
    {
      security_event: true,
      mode: profile.value.recovery.mode,
      credential: credential.by,
      repair_bundle: credential.by === 'repair' && node.repair !== null ? node.repair.id : null,
      withdrawn_issuer: livesBy(before, facts.withdrawn) ? (slotsOf(before)?.current.issuer ?? null) : null,
      registered: node.recovery === null ? null : node.recovery.credential.kind,
      approved_by: before.approvals.map(({ by: person }) => person),
      ...failed,
      ...repaired,
      claimant: holderWords(claimant),
      ...certificateWords(certificate),
      counter: node.counter,
    },
  )
  const requested = entry(by, nowMs, 'node.recovery_requested', about, asked)
  return [requested, ...(slotsOf(before) === null ? [] : [supersedes]), done]
}

/** An agent before 0.4 reports `endpoint_unreachable` where nothing had failed but a bundle was brought, which fences the node. */
const causeOf = ({ credential, failure }: RecoverFacts): FailureClass =>
  credential.by === 'repair' && failure.code === 'repair_requested' ? 'identity_revoked_or_fenced' : failure.class

/** Why an operator made the bundle, and why the node was in quarantine. */
const repairCause = ({ repair, membership }: Node) => ({
  repair_reason: repair === null ? null : repair.reason,
  quarantined_for: membership.kind === 'quarantined' ? membership.reason : null,
})
