// A new key and certificate within an epoch (rulings 4 and 8). One successor a certificate: the same request again gets
// the same answer, another key means that somebody else holds this identity too.

import type { KeyBan } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { issuanceBarred } from '#domain/continuity/continuity.ts'
import type { Attribution } from '#domain/core/decision.ts'
import { isFromFuture } from '#domain/core/clock-tolerance.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import {
  decideDuplicate,
  type DuplicateSign,
  type DuplicateVerdict,
  type HolderFacts,
  type Suspicion,
} from './duplicate.ts'
import { issuanceHalted } from './issuance.ts'
import { hasCondition } from '#domain/core/conditions.ts'
import { keyInUse, type KeyClaimFacts, type KeyInUseFacts } from './key-claim.ts'
import { keyUnfit } from './key-fitness.ts'
import { keyBanned } from './presented-certificate.ts'
import { orderNodeCertificate, type KeyInRequest } from './node-certificate.ts'
import type { IssuerId, Node, Slot, Slots } from '#domain/core/node.ts'
import type { SigningOrder } from '#domain/core/order.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import {
  oldestCounter,
  type PresentedCounter,
  type RecoveryRegistrationFacts,
} from '#domain/core/recovery-credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { slotNameOf, type SlotName } from '#domain/core/slots.ts'

export type RenewFacts = {
  readonly node: Row<Node>
  readonly principal: NodePrincipal
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
  readonly key: KeyInRequest | { readonly kind: 'malformed'; readonly why: string }
  readonly keyBan: Row<KeyBan> | null
  /** Of the key of the current certificate, which alone is renewed. */
  readonly currentKeyBan: Row<KeyBan> | null
  readonly keyClaims: KeyClaimFacts
  /** Null: an older agent, which is not held to it. */
  readonly counter: PresentedCounter | null
  /** By what it wants to recover from now on; heard only where nothing is registered. */
  readonly register: RecoveryRegistrationFacts | null
  readonly claimant: HolderFacts
  /** The claimant's own process has a channel open. */
  readonly claimantLive: boolean
  /** Another process with a live channel, which has answered a ping just now. */
  readonly otherHolder: HolderFacts | null
  /** What was last seen of the node: named where two holders are, never decided on. */
  readonly lastSeen: HolderFacts | null
  /** Authorities that are withdrawn: what they have signed is no answer to anybody. */
  readonly withdrawn: readonly IssuerId[]
  readonly orderId: string
  readonly by: Attribution
  readonly nowMs: number
}

export type RenewVerdict =
  | Refusal
  | { readonly kind: 'repeat'; readonly slot: Slot }
  /** There are two; what becomes of them is to be committed before the refusal is told. */
  | { readonly kind: 'duplicate'; readonly verdict: Exclude<DuplicateVerdict, { kind: 'claimant-stays' }> }
  | Renewal

export type Renewal = {
  readonly kind: 'admitted'
  readonly facts: RenewFacts
  readonly slots: Slots
  /** Somebody else got a successor that nobody has used; what to write down about that. */
  readonly suspicion: Suspicion | null
  readonly order: SigningOrder
}

export const decideRenew = (facts: RenewFacts): RenewVerdict => {
  const { node, principal, key, nowMs } = facts
  const barred = issuanceBarred(facts.domain.value) ?? issuanceHalted(facts.domain.value, 'known')
  if (barred !== null) return barred
  if (key.kind === 'malformed') return refuse('CSR_INVALID', key.why)
  const { membership } = node.value
  // The caller's first use has been committed before: whoever may renew is active by now.
  if (membership.kind !== 'active') return refuse('NODE_STATE_CONFLICT', `the node is ${membership.kind}`)
  if (node.value.epoch !== principal.epoch) return refuse('CLIENT_CERT_DENIED')

  const { slots } = membership
  const isWithdrawn = ({ issuer }: Slot): boolean => facts.withdrawn.includes(issuer)
  // Authentication has looked already; the key may have been banned since.
  if (facts.currentKeyBan !== null) return keyBanned()
  // Whoever still drains with the one before has to recover like all that live by it.
  if (isWithdrawn(slots.current)) return refuse('CLIENT_CERT_DENIED', 'the authority that issued it has been withdrawn')
  const asking = slotNameOf(slots, principal.proof.issuer, principal.proof.serial)
  // The same request again, on a connection that has not heard of its answer having been used already.
  if (asking === 'retired' && slots.current.spki === key.spkiHash) return { kind: 'repeat', slot: slots.current }
  const { pending } = slots
  // One that nobody can use, because a clock that was ahead has dated it, is no successor.
  const isUsable = (slot: Slot): boolean =>
    slot.notAfterMs > nowMs &&
    !isWithdrawn(slot) &&
    !isFromFuture(slot.issuedAtMs, nowMs, facts.domain.value.clockToleranceMs)
  const succeeded = pending !== null && isUsable(pending) ? pending : null
  if (asking === 'current' && succeeded?.spki === key.spkiHash) return { kind: 'repeat', slot: succeeded }

  const lineage = judgeLineage(facts, asking, succeeded)
  if (lineage.kind !== 'one-holder') return lineage
  if (slots.current.spki === key.spkiHash) return refuse('CSR_INVALID', 'a renewal needs a new key')
  const unfit = keyUnfit({ ...facts, recovery: node.value.recovery }, key)
  const barredKey = unfit ?? keyInUse(keyInUseFacts(facts, key.spkiHash))
  return barredKey ?? ordered(facts, slots, lineage.suspicion, key)
}

/** A registration is heard only from a node that has none, and not while two may hold the identity. */
export const keyInUseFacts = ({ node, register, keyClaims: claims }: RenewFacts, spki: string): KeyInUseFacts => {
  const { value } = node
  const heard = value.recovery === null && !hasCondition(value, 'duplicate_identity')
  return { nodeId: value.id, node: value, spki, register: heard ? register : null, claims }
}

type OneHolder = { readonly kind: 'one-holder'; readonly suspicion: Suspicion | null }

/** One certificate has one successor, and one counter: anything else means that somebody else holds this identity too. */
const judgeLineage = (facts: RenewFacts, asking: SlotName | null, succeeded: Slot | null): OneHolder | RenewVerdict => {
  const { node, counter, claimant, otherHolder } = facts
  const old = counter !== null && counter.counter < oldestCounter(node.value)
  // An older agent cannot be told from another, unless somebody who can is connected.
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

const ordered = (facts: RenewFacts, slots: Slots, suspicion: Suspicion | null, key: KeyInRequest): RenewVerdict => {
  const order = orderNodeCertificate({
    id: facts.orderId,
    node: facts.node.value.id,
    epoch: facts.node.value.epoch,
    profile: facts.profile.value,
    domain: facts.domain.value,
    key,
    nowMs: facts.nowMs,
  })
  return order.kind === 'refused' ? order : { kind: 'admitted', facts, slots, suspicion, order: order.order }
}
