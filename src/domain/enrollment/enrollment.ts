// May this caller have an identity? The heart of the registry: rulings 3, 4 and 5.

import { approvalComplete } from '#domain/core/approval.ts'
import type { Credential } from './credential.ts'
import { hardwareMatches } from './credential.ts'
import { issuanceBarred } from '#domain/continuity/continuity.ts'
import type { KeyBan } from '#domain/core/certificate.ts'
import { readOf, type Change, type Row } from '#domain/core/change.ts'
import { entry, type Attribution } from '#domain/core/decision.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { HolderFacts } from '#domain/identity/duplicate.ts'
import { durationWords } from '#domain/core/duration-words.ts'
import { issuanceHalted } from '#domain/identity/issuance.ts'
import { keyInUse, type KeyClaimFacts, type KeyInUseFacts } from '#domain/identity/key-claim.ts'
import { keyUnfit } from '#domain/identity/key-fitness.ts'
import { orderNodeCertificate, type KeyInRequest } from '#domain/identity/node-certificate.ts'
import {
  noHardware,
  type HardwareFacts,
  type HardwareIdentity,
  type IssuerId,
  type Node,
  type NodeId,
  type Slot,
} from '#domain/core/node.ts'
import type { SigningOrder } from '#domain/core/order.ts'
import type { JoinMethod, Profile } from '#domain/core/profile.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { refuse, refuseMethod, type Refusal } from '#domain/core/refusal.ts'
import { firstTenure, newNode } from './registration.ts'
import { slotForKey, slotsOf } from '#domain/core/slots.ts'
import { spentOn } from './spent-token.ts'
import { hasComeBack } from './supersession.ts'
import { wireguardBarred, type WireguardFacts, type WireguardHeld } from '#domain/network/wireguard-part.ts'

export type EnrollFacts = {
  readonly credential: Credential
  /** The node the credential names; null when a token of the domain is about to register one. */
  readonly node: Row<Node> | null
  /** Its name, or the one it is going to have. */
  readonly nodeId: NodeId
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
  readonly key: KeyInRequest | { readonly kind: 'malformed'; readonly why: string }
  readonly keyBan: Row<KeyBan> | null
  readonly keyClaims: KeyClaimFacts
  readonly reported: { readonly hardware: HardwareIdentity; readonly facts: HardwareFacts | null }
  /** What the node asks to recover by; null: an older agent, or one that wants nothing. */
  readonly recovery: RecoveryRegistrationFacts | null
  /** What it brings to the WireGuard network; null: nothing. */
  readonly wireguard: WireguardFacts | null
  /** What the node has there now. */
  readonly wireguardHeld: WireguardHeld
  /** What became of pinging the channel that is open, where the profile asks for it. */
  readonly probe: ProbeOutcome
  /** Who asks, and who was last seen; null where nobody could be superseded by hardware alone. */
  readonly holders: { readonly claimant: HolderFacts; readonly holder: HolderFacts | null } | null
  /** Authorities that are withdrawn: what they have signed is no answer to anybody. */
  readonly withdrawn: readonly IssuerId[]
  readonly orderId: string
  readonly by: Attribution
  readonly nowMs: number
}

/** `silentMs`: for how long the channel that is open, or was last, has been silent. */
/** `closedByHolder`: the holder had closed its channel itself before. Else one went silent, or nobody can tell. */
export type ProbeOutcome = 'not-tried' | 'answered' | { readonly silentMs: number; readonly closedByHolder?: true }

export type EnrollVerdict =
  | Refusal
  /** A no that uses up the token all the same (ruling 5); the change also says so in the journal. */
  | { readonly kind: 'refused-and-spent'; readonly refusal: Refusal; readonly change: Change }
  /** Asked before by the same key: the answer is the certificate it got then. `spends` uses up a token it came with. */
  | { readonly kind: 'repeat'; readonly node: Row<Node>; readonly slot: Slot; readonly spends: Change | null }
  /** Find out whether the active node is still there, then ask again. */
  | { readonly kind: 'probe'; readonly node: Row<Node> }
  | Admission

export type Admission = {
  readonly kind: 'admitted'
  readonly facts: EnrollFacts
  /** As it was before; a domain token's node starts here. */
  readonly before: Node
  readonly epoch: number
  readonly supersedes: 'nothing' | 'a lapsed identity' | 'an active identity'
  readonly order: SigningOrder
}

export const decideEnroll = (facts: EnrollFacts): EnrollVerdict => {
  const { key, node } = facts
  const domain = facts.domain.value
  const stopped = issuanceBarred(domain) ?? issuanceHalted(domain, 'known')
  if (stopped !== null) return stopped
  if (key.kind === 'malformed') return refuse('CSR_INVALID', key.why)

  const repeated = repeatOf(facts, key.spkiHash)
  if (repeated !== null) return repeated
  const halted = issuanceHalted(domain, 'new')
  if (halted !== null) return halted

  const barred = tokenTaken(facts) ?? tokenOutlived(facts) ?? wayOfJoining(facts) ?? keyBarred(facts, key)
  if (barred !== null) return barred

  if (node === null) return admit(facts, newcomer(facts), 'nothing')
  switch (node.value.membership.kind) {
    case 'registered':
      return admit(facts, node.value, 'nothing')
    case 'enrolled':
    case 'inactive':
      if (facts.profile.value.comeback.by === 'approve' && !approvalComplete(node.value, facts.profile.value)) {
        return refuse('APPROVAL_REQUIRED')
      }
      return admit(facts, node.value, 'a lapsed identity')
    case 'active':
      return anotherKeyWhileActive(facts, node)
    case 'quarantined':
      // Released first: quarantine is left by an operator, not by a token.
      return refuse('NODE_QUARANTINED')
    case 'revoked':
      return refuse('NODE_REVOKED')
  }
}

/** Same key, same answer: nothing is signed twice. A lapsed node that has to join anew is not given its old certificate. */
const repeatOf = (facts: EnrollFacts, spki: string): EnrollVerdict | null => {
  const { node, credential } = facts
  if (node === null) return null
  if (credential.method === 'token' && !tokenAnswers(facts, spki)) return null
  const slots = slotsOf(node.value)
  if (slots === null) return null
  if (node.value.membership.kind === 'inactive' && facts.profile.value.comeback.by !== 'certificate') return null
  if (bringsAnotherKey(facts, node.value)) return null
  const slot = slotForKey(slots, spki, facts.nowMs)
  if (slot === null || facts.withdrawn.includes(slot.issuer)) return null
  return { kind: 'repeat', node, slot, spends: spent(facts, node, slot) }
}

/** With another WireGuard key it is not the same request: answered with what it got then, its peers would not know that key. */
const bringsAnotherKey = ({ wireguard, profile }: EnrollFacts, node: Node): boolean =>
  wireguard !== null &&
  profile.value.wireguard.mode !== 'off' &&
  wireguard.brought.publicKey !== node.wireguard?.publicKey

/** Whoever was answered is the one user a token has: left unused, it would let somebody else in. */
const spent = ({ credential, by, nowMs }: EnrollFacts, node: Row<Node>, slot: Slot): Change | null => {
  if (credential.method !== 'token' || credential.standing !== 'unused') return null
  const { token } = credential
  const { id } = node.value
  const state = { kind: 'used', spki: slot.spki, node: id, atMs: nowMs } as const
  const about = { node: id, epoch: node.value.epoch, token: token.value.id, issuer: slot.issuer, serial: slot.serial }
  return {
    reads: [readOf('token', token.value.hash, token), readOf('node', id, node)],
    writes: [{ put: 'token', value: { ...token.value, state } }],
    entries: [
      entry(by, nowMs, 'enrollment_token.used', about, { token_id: token.value.id, key: `SHA256:${slot.spki}` }),
    ],
  }
}

const tokenAnswers = ({ credential }: EnrollFacts, spki: string): boolean => {
  if (credential.method !== 'token') return false
  const state = credential.token.value.state
  return state.kind === 'unused' || ((state.kind === 'used' || state.kind === 'bound') && state.spki === spki)
}

const tokenTaken = ({ credential, node, key, nowMs }: EnrollFacts): Refusal | null => {
  if (credential.method !== 'token' || credential.standing !== 'taken') return null
  const { state, expiresAtMs } = credential.token.value
  const byThisKey = 'spki' in state && key.kind === 'key' && state.spki === key.spkiHash
  // Its own machine asks again: what keeps it out is the node's state, and that is what it should hear.
  if (byThisKey && node?.value.membership.kind === 'quarantined') return refuse('NODE_QUARANTINED')
  if (byThisKey && node?.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (byThisKey && nowMs < expiresAtMs && neverAnswered(node, state.spki)) return null
  return refuse('TOKEN_USED')
}

/** The answer was lost, and has expired before it could be given again: the one user the token has is still not in. */
const neverAnswered = (node: Row<Node> | null, spki: string): boolean =>
  node?.value.membership.kind === 'enrolled' && node.value.membership.slots.current.spki === spki

/** A token does not outlive a tombstone or a quarantine, however often the node has come back since. */
const tokenOutlived = ({ credential, node }: EnrollFacts): Refusal | null => {
  if (credential.method !== 'token' || node === null) return null
  const { scope } = credential.token.value
  if (scope.kind === 'domain' || scope.tenure === node.value.tenure) return null
  return refuse('TOKEN_INVALID', 'it was made before the node was registered anew or released')
}

/** Every method the profile asks for has to be proven, and the one used has to be among them. */
const wayOfJoining = ({ credential, profile, node, reported }: EnrollFacts): Refusal | null => {
  const { allOf, tokenScope } = profile.value.join
  const registered = node === null ? noHardware : node.value.hardware
  const proven: readonly JoinMethod[] = [
    credential.method,
    ...(hardwareMatches(registered, reported.hardware) ? (['hardware'] as const) : []),
  ]
  if (!allOf.includes(credential.method)) {
    return refuseMethod(profile.value.name, `asks for ${allOf.join(' and ')}`)
  }
  if (credential.method === 'token' && credential.token.value.scope.kind === 'domain' && tokenScope === 'node') {
    return refuseMethod(profile.value.name, 'asks for a token made for the node')
  }
  const missing = allOf.filter((method) => !proven.includes(method))
  if (missing.length === 0) return null
  return refuseMethod(profile.value.name, `also asks for ${missing.join(' and ')}`)
}

/** A tombstone says more than the ban it left: another key would not get in either. */
const keyBarred = ({ keyBan, node, profile, recovery: register }: EnrollFacts, key: KeyInRequest): Refusal | null => {
  const buried = node !== null && node.value.membership.kind === 'revoked'
  const recovery = node === null ? null : node.value.recovery
  return keyUnfit({ keyBan: buried ? null : keyBan, profile, recovery, register }, key)
}

const anotherKeyWhileActive = (facts: EnrollFacts, node: Row<Node>): EnrollVerdict => {
  const { credential, profile } = facts
  const mayReplace = credential.method === 'token' && credential.token.value.replace
  if (mayReplace) return admit(facts, node.value, 'an active identity')
  switch (profile.value.onActiveConflict) {
    case 'prove':
      return provesRecoveryKey(facts, node.value)
        ? admit(facts, node.value, 'an active identity')
        : refuse('ALREADY_ACTIVE')
    case 'reject':
      return refuse('ALREADY_ACTIVE', 'it becomes free when the node has been away for the grace')
    case 'probe':
      if (facts.probe === 'not-tried') return { kind: 'probe', node }
      if (facts.probe === 'answered') {
        return refuse('ALREADY_ACTIVE', 'the machine that holds this identity answered just now')
      }
      return (
        (hasComeBack(facts) ? null : silentForTooShort(profile.value, facts.probe.silentMs)) ??
        admit(facts, node.value, 'an active identity')
      )
  }
}

const longestPauseMs = 10_000

/** The caller is not kept waiting on its connection: it asks again, and the silence goes on counting meanwhile. */
const silentForTooShort = ({ probeSilenceMs }: Profile, silentMs: number): Refusal | null => {
  const leftMs = probeSilenceMs - silentMs
  if (leftMs <= 0) return null
  const said = `the machine that holds this identity does not answer; it keeps it for ${durationWords(leftMs)} more`
  return { ...refuse('BUSY', said), retryAfterMs: Math.ceil(Math.min(leftMs, longestPauseMs)) }
}

/** Whoever proves the recovery key is the one who registered it. */
const provesRecoveryKey = ({ recovery }: EnrollFacts, node: Node): boolean => {
  const registered = node.recovery?.credential
  return recovery?.kind === 'key' && registered?.kind === 'key' && recovery.spki === registered.spki
}

export const keyInUseFacts = (
  { nodeId, node, profile, recovery, keyClaims: claims }: EnrollFacts,
  spki: string,
): KeyInUseFacts => {
  const register = profile.value.recovery.mode === 'deny' ? null : recovery
  return { nodeId, node: node === null ? null : node.value, spki, register, claims }
}

const newcomer = ({ nodeId: id, profile, by, nowMs }: EnrollFacts): Node =>
  newNode({ id, profile: profile.value.name, hardware: noHardware, ...firstTenure, by, nowMs })

const admit = (facts: EnrollFacts, before: Node, supersedes: Admission['supersedes']): EnrollVerdict => {
  if (facts.key.kind !== 'key') throw new Error('a request without a key was about to be admitted')
  const inUse = keyInUse(keyInUseFacts(facts, facts.key.spkiHash))
  if (inUse !== null) return inUse
  // Last: of a request that would get in, only the WireGuard key of another uses up the token.
  const barred = wireguardBarred(facts.profile.value, before.id, facts.wireguard)
  if (barred !== null) return barred.code === 'WG_KEY_IN_USE' ? spentOn(barred, facts) : barred
  const epoch = before.epoch + 1
  const order = orderNodeCertificate({
    id: facts.orderId,
    node: before.id,
    epoch,
    profile: facts.profile.value,
    domain: facts.domain.value,
    key: facts.key,
    nowMs: facts.nowMs,
  })
  if (order.kind === 'refused') return order
  return { kind: 'admitted', facts, before, epoch, supersedes, order: order.order }
}
