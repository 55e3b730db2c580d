// A new key and certificate within an epoch (rulings 4 and 8). A certificate has one successor: the same request again gets the
// same answer, another key means that there is a second holder.

import {
  slotOf,
  type IssuedCertificate,
  type KeyBan,
  isFromFuture,
  slotNameOf,
  type SlotName,
} from '#domain/core/certificate.ts'
import { readOf, type Row, type Write, entry } from '#domain/core/change.ts'
import {
  decideDuplicate,
  type DuplicateSign,
  type DuplicateVerdict,
  type HolderFacts,
  type Suspicion,
} from './duplicate.ts'
import { hasCondition, withCondition } from '#domain/core/conditions.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { keyInUse, type KeyInUseFacts } from './key-claim.ts'
import { keyBanned } from './presented-certificate.ts'
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
} from './node-certificate.ts'
import type { Node, Recovery, Slot, Slots } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import {
  oldestCounter,
  registeredRecovery,
  replacedBy,
  replacedKey,
  rotated,
  type PresentedCounter,
  type RecoveryRegistrationFacts,
  type NextBearerHash,
} from '#domain/core/recovery-credential.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { hardwareAfterRenewal } from '#domain/core/reported-hardware.ts'

export type RenewFacts = IssueFacts & {
  readonly node: Row<Node>
  readonly principal: NodePrincipal
  /** Of the key of the current certificate, which alone is renewed. */
  readonly currentKeyBan: Row<KeyBan> | null
  /** Null: an older agent, which is not held to it. */
  readonly counter: PresentedCounter | null
  /** The recovery credential to register; used only where none is registered. */
  readonly register: RecoveryRegistrationFacts | null
  readonly claimant: HolderFacts
  /** The claimant's own process has a channel open. */
  readonly claimantLive: boolean
  /** Another process with a live channel, which has answered a ping just now. */
  readonly otherHolder: HolderFacts | null
  /** What was last seen of the node: named where two holders are, never decided on. */
  readonly lastSeen: HolderFacts | null
}

export type RenewVerdict =
  | Refusal
  | Repeated
  /** There are two holders; the consequence has to be committed before the refusal is answered. */
  | { readonly kind: 'duplicate'; readonly verdict: Exclude<DuplicateVerdict, { kind: 'claimant-stays' }> }
  | Renewal

export type Renewal = Admitted<RenewFacts> & {
  readonly slots: Slots
  /** Another holder got a successor that was never used; the suspicion to record. */
  readonly suspicion: Suspicion | null
}

export const decideRenew = (facts: RenewFacts): RenewVerdict => {
  const { node, principal, key, nowMs } = facts
  const barred = issuanceStopped(facts.domain.value, 'known')
  if (barred !== null) return barred
  if (key.kind === 'malformed') return refuseField('CSR_INVALID', 'csr', key.why)
  const { membership } = node.value
  // The caller's first use has been committed before: a node that may renew is active by now.
  if (membership.kind !== 'active') return refuse('NODE_STATE_CONFLICT', `the node is ${membership.kind}`)
  if (node.value.epoch !== principal.epoch) return refuse('CLIENT_CERT_DENIED')

  const { slots } = membership
  const isWithdrawn = ({ issuer }: Slot): boolean => facts.withdrawn.includes(issuer)
  // Authentication has looked already; the key may have been banned since.
  if (facts.currentKeyBan !== null) return keyBanned()
  // A holder that still drains with a certificate of that issuer has to recover like its other nodes.
  if (isWithdrawn(slots.current)) return refuse('CLIENT_CERT_DENIED', 'the authority that issued it has been withdrawn')
  const asking = slotNameOf(slots, principal.credential.issuer, principal.credential.serial)
  // The same request again, on an old connection, after its answer was used on another.
  if (asking === 'retired' && slots.current.spki === key.spkiHash) return repeat(facts, slots.current)
  const { pending } = slots
  // A certificate that cannot be used yet, because a clock that was ahead has dated it, is no successor.
  const isUsable = (slot: Slot): boolean =>
    slot.notAfterMs > nowMs &&
    !isWithdrawn(slot) &&
    !isFromFuture(slot.issuedAtMs, nowMs, facts.domain.value.clockToleranceMs)
  const succeeded = pending !== null && isUsable(pending) ? pending : null
  if (asking === 'current' && succeeded?.spki === key.spkiHash) return repeat(facts, succeeded)

  const succession = judgeSuccession(facts, asking, succeeded)
  if (succession.kind !== 'one-holder') return succession
  if (slots.current.spki === key.spkiHash) return refuseField('CSR_INVALID', 'csr', 'a renewal needs a new key')
  const unfit = keyUnfit(facts, key, { recovery: node.value.recovery, register: facts.register })
  const barredKey = unfit ?? keyInUse(keyInUseFacts(facts, key.spkiHash))
  if (barredKey !== null) return barredKey
  const admitted = admit(facts, key, node.value, node.value.epoch)
  return admitted.kind === 'refused' ? admitted : { ...admitted, slots, suspicion: succession.suspicion }
}

const repeat = (facts: RenewFacts, slot: Slot): Repeated => ({
  ...{ kind: 'repeat', facts, node: facts.node.value, slot, spends: null },
})

/** A registration is accepted only from a node that has none or proves the one it has, and not while a duplicate is suspected. */
const keyInUseFacts = ({ node, register, keyClaims: claims }: RenewFacts, spki: string): KeyInUseFacts => {
  const { value } = node
  const { recovery } = value
  const isWanted = recovery === null || replacedKey(recovery.credential, register) !== null
  const mayRegister = isWanted && !hasCondition(value, 'duplicate_identity')
  return { nodeId: value.id, node: value, spki, register: mayRegister ? register : null, claims }
}

type OneHolder = { readonly kind: 'one-holder'; readonly suspicion: Suspicion | null }

/** A certificate has one successor and one counter: anything else means that there is a second holder. */
const judgeSuccession = (
  facts: RenewFacts,
  asking: SlotName | null,
  succeeded: Slot | null,
): OneHolder | RenewVerdict => {
  const { node, counter, claimant, otherHolder } = facts
  const old = counter !== null && counter.counter < oldestCounter(node.value)
  // A caller without an instance id is a second holder only if a process with one is connected.
  if (claimant.instance === null && otherHolder === null) {
    if (asking !== 'current') return refuse('SERIAL_MISMATCH')
    return succeeded !== null || old ? refuse('LINEAGE_CONFLICT') : { kind: 'one-holder', suspicion: null }
  }
  const sign = signOf(asking, succeeded, old, otherHolder)
  if (sign === null) return { kind: 'one-holder', suspicion: null }
  const verdict = decideDuplicate({ ...facts, sign })
  if (verdict.kind !== 'claimant-stays') return { kind: 'duplicate', verdict }
  // Even the one who stays renews only what is current.
  return asking === 'current' ? { kind: 'one-holder', suspicion: verdict.suspicion } : refuse('SERIAL_MISMATCH')
}

const signOf = (
  asking: SlotName | null,
  succeeded: Slot | null,
  old: boolean,
  otherHolder: HolderFacts | null,
): DuplicateSign | null => {
  if (asking === 'retired') return 'draining-serial'
  if (asking !== 'current') return 'replaced-serial'
  if (succeeded !== null) return 'second-successor'
  if (old) return 'old-counter'
  return otherHolder === null ? null : 'second-instance'
}

/** What is committed with the order to an outside issuer. */
export const intendRenewal = (renewal: Renewal, spki: string): Intended =>
  intended(renewal, renewal.facts.node, keyInUseFacts(renewal.facts, spki), {
    reads: [readOf('key-ban', renewal.slots.current.spki, null)],
    writes: [],
  })

/** The successor waits in the pending slot until it is used. `nextBearerHash` is used where the node recovers by a token. */
export const recordRenewal = (
  renewal: Renewal,
  issued: IssuedCertificate,
  nextBearerHash: NextBearerHash,
): Recorded => {
  const { facts, before, slots, suspicion } = renewal
  const { node, principal, domain, by, nowMs } = facts
  const certificate = certificateOf(renewal, issued, slots.current.serial)
  const successor: Node = {
    ...before,
    membership: { ...before.membership, kind: 'active', slots: { ...slots, pending: slotOf(certificate) } },
    counter: before.counter + 1,
    recovery: recoveryAfter(facts, nextBearerHash),
    ...hardwareAfterRenewal(before, facts.claimant),
    conditions:
      suspicion === null
        ? before.conditions
        : withCondition(before.conditions, { name: 'duplicate_identity', sinceMs: nowMs, ...suspicion }),
  }
  const about = { node: before.id, epoch: principal.epoch, issuer: issued.issuer, serial: issued.serial }
  const body = {
    renews: slots.current.serial,
    replaces: slots.pending === null ? null : slots.pending.serial,
    ...certificateWords(issued),
    counter: successor.counter,
    registered: isRegistered(before.recovery, successor.recovery)
      ? (successor.recovery?.credential.kind ?? null)
      : null,
  }
  return recorded(renewal, { before: node, node: successor, certificate }, keyInUseFacts(facts, issued.spki), {
    // A revocation of another node with the same key bans it, and does not write this node.
    reads: [readOf('key-ban', slots.current.spki, null)],
    writes: slots.pending === null ? [] : [denialOf(slots.pending, domain.value.clockToleranceMs, nowMs)],
    entries: [...suspected(renewal), entry(by, nowMs, 'node.renewed', about, body)],
  })
}

/**
 * A node that has none, because its agent or its plane knew none before or an operator's decision took it away, registers
 * one here. Not while two may hold the identity: it would be whose turn it is.
 */
const recoveryAfter = (facts: Renewal['facts'], nextBearerHash: NextBearerHash): Recovery | null => {
  const { node, profile, register, nowMs } = facts
  const { recovery } = node.value
  const isShared = hasCondition(node.value, 'duplicate_identity')
  if (recovery !== null) {
    const replaced = isShared ? null : replacedKey(recovery.credential, register)
    const credential =
      replaced === null || register?.kind !== 'key'
        ? rotated(recovery.credential, nextBearerHash)
        : replacedBy(replaced, register, nowMs)
    return { ...recovery, credential }
  }
  if (isShared) return null
  return registeredRecovery(register, profile.value, nextBearerHash, nowMs)
}

/** Also in the place of another. */
const isRegistered = (before: Recovery | null, after: Recovery | null): boolean => {
  if (after === null || before === null) return after !== null
  const [was, is] = [before.credential, after.credential]
  return is.kind === 'key' && is.former !== undefined && (was.kind !== 'key' || was.spki !== is.spki)
}

/** Removes the unused successor. */
const denialOf = ({ issuer, serial, notAfterMs }: Slot, toleranceMs: number, atMs: number): Write => ({
  put: 'denial',
  value: {
    kind: 'certificate',
    issuer,
    serial,
    atMs,
    untilMs: notAfterMs + toleranceMs,
    why: 'replaced before its first use',
    reason: 'superseded',
  },
})

const suspected = ({ facts, suspicion }: Renewal): readonly EntryDraft[] => {
  const { node, by, nowMs } = facts
  if (suspicion === null || hasCondition(node.value, 'duplicate_identity')) return []
  const { reason, evidence } = suspicion
  const body = { condition: 'duplicate_identity', reason, ...evidence }
  return [entry(by, nowMs, 'node.second_holder', { node: node.value.id, epoch: node.value.epoch }, body)]
}
