// May this caller have an identity? The heart of the registry: rulings 3, 4 and 5.

import { isoTime } from '#platform/clock.ts'
import { approvalComplete } from '#domain/core/approval.ts'
import {
  slotOf,
  type CertificateRow,
  type IssuedCertificate,
  denialOfEpoch,
  slotForKey,
  slotsOf,
} from '#domain/core/certificate.ts'
import { type Change, type Row, type Write, boundedText, entry } from '#domain/core/change.ts'
import type { HolderFacts } from '#domain/identity/duplicate.ts'
import type { EntryBody, EntryDraft } from '#domain/core/journal-entry.ts'
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
  type KeyInRequest,
  type Recorded,
  type Repeated,
} from '#domain/identity/node-certificate.ts'
import {
  assurances,
  noHardware,
  type Assurance,
  type HardwareFacts,
  type HardwareIdentity,
  type Node,
  type NodeId,
} from '#domain/core/node.ts'
import type { JoinMethod } from '#domain/core/profile.ts'
import { firstTenure, type FormerNode } from '#domain/core/purged-node.ts'
import {
  registeredRecovery,
  type NextBearerHash,
  type RecoveryRegistrationFacts,
} from '#domain/core/recovery-credential.ts'
import { refuse, refuseField, refuseMethod, type Refusal } from '#domain/core/refusal.ts'
import { hardwareFor } from '#domain/core/reported-hardware.ts'
import { isSuspicion } from '#domain/identity/settle.ts'
import {
  underlayText,
  wireguardBarred,
  wireguardJoined,
  type WireguardFacts,
  type WireguardHeld,
} from '#domain/network/wireguard-part.ts'
import { hardwareMatches } from '#domain/core/hardware-identity.ts'
import {
  boundToKey,
  credentialReads,
  spentByAnswer,
  spentByRefusal,
  tokenAnswers,
  tokenOutlived,
  tokenTaken,
  type Credential,
} from './credential.ts'
import type { IdentityProof } from './identity-proof.ts'
import { newNode, registeredEntry } from './registration.ts'
import { bothHolders, isByHardwareAlone, keptByHolder, provenBy } from './supersession.ts'

export type EnrollFacts = IssueFacts & {
  readonly credential: Credential
  /** The node the credential names; null when a token of the domain is about to register one. */
  readonly node: Row<Node> | null
  /** What is known of an earlier one where `node` is null; null: `node` is not. */
  readonly former: FormerNode | null
  /** Its name, or the one it is going to have. */
  readonly nodeId: NodeId
  readonly reported: { readonly hardware: HardwareIdentity; readonly facts: HardwareFacts | null }
  /** What the node asks to recover by; null: an older agent, or one that wants nothing. */
  readonly recovery: RecoveryRegistrationFacts | null
  /** The key of its certificate, proven; null: it proves none. */
  readonly proof: IdentityProof | null
  /** What it brings to the WireGuard network; null: nothing. */
  readonly wireguard: WireguardFacts | null
  /** What the node has there now. */
  readonly wireguardHeld: WireguardHeld
  /** What became of pinging the channel that is open, where the profile asks for it. */
  readonly probe: ProbeOutcome
  /** The caller and the last holder; null where no node could be superseded by hardware alone. */
  readonly holders: { readonly claimant: HolderFacts; readonly holder: HolderFacts | null } | null
}

/**
 * `silentMs`: for how long the channel that is open, or was last, has been silent. `closedByHolder`: the holder had closed
 * its channel itself before. Otherwise the channel went silent, or its end is unknown.
 */
export type ProbeOutcome = 'not-tried' | 'answered' | { readonly silentMs: number; readonly closedByHolder?: true }

export type EnrollVerdict =
  | Refusal
  /** A no that uses up the token all the same (ruling 5); the change also says so in the journal. */
  | { readonly kind: 'refused-and-spent'; readonly refusal: Refusal; readonly change: Change }
  | Repeated
  /** Find out whether the active node is still there, then ask again. */
  | { readonly kind: 'probe'; readonly node: Row<Node> }
  | Admission

export type Admission = Admitted<EnrollFacts> & {
  readonly supersedes: 'nothing' | 'a lapsed identity' | 'an active identity'
}

export const decideEnroll = (facts: EnrollFacts): EnrollVerdict => {
  const { key, node } = facts
  const domain = facts.domain.value
  const stopped = issuanceStopped(domain, 'known')
  if (stopped !== null) return stopped
  if (key.kind === 'malformed') return refuseField('CSR_INVALID', 'csr', key.why)

  const repeated = repeatOf(facts, key.spkiHash)
  if (repeated !== null) return repeated
  const halted = issuanceStopped(domain, 'new')
  if (halted !== null) return halted

  const barred = tokenTaken(facts) ?? tokenOutlived(facts) ?? wayOfJoining(facts) ?? keyBarred(facts, key)
  if (barred !== null) return barred

  if (node === null) return admitted(facts, newcomer(facts), 'nothing')
  switch (node.value.membership.kind) {
    case 'registered':
      return admitted(facts, node.value, 'nothing')
    case 'enrolled':
    case 'inactive':
      if (facts.profile.value.comeback.by === 'approve' && !approvalComplete(node.value, facts.profile.value)) {
        return refuse('APPROVAL_REQUIRED')
      }
      return admitted(facts, node.value, 'a lapsed identity')
    case 'active':
      return keptByHolder(facts, node) ?? admitted(facts, node.value, 'an active identity')
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
  return { kind: 'repeat', facts, node: node.value, slot, spends: spentByAnswer(facts, node, slot) }
}

/** With another WireGuard key it is not the same request: answered with what it got then, its peers would not know that key. */
const bringsAnotherKey = ({ wireguard, profile }: EnrollFacts, node: Node): boolean =>
  wireguard !== null &&
  profile.value.wireguard.mode !== 'off' &&
  wireguard.brought.publicKey !== node.wireguard?.publicKey

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
  return keyUnfit({ keyBan: buried ? null : keyBan, profile }, key, { recovery, register })
}

const keyInUseFacts = (
  { nodeId, node, profile, recovery, keyClaims: claims }: EnrollFacts,
  spki: string,
): KeyInUseFacts => {
  const register = profile.value.recovery.mode === 'deny' ? null : recovery
  return { nodeId, node: node === null ? null : node.value, spki, register, claims }
}

const newcomer = (facts: EnrollFacts): Node => {
  const { nodeId: id, profile, by, nowMs } = facts
  return newNode({ id, profile: profile.value.name, hardware: noHardware, ...firstTenure(formerOf(facts)), by, nowMs })
}

const formerOf = ({ former }: EnrollFacts): FormerNode => {
  if (former === null) throw new Error('a node was about to be registered without a look at an earlier one')
  return former
}

const admitted = (facts: EnrollFacts, before: Node, supersedes: Admission['supersedes']): EnrollVerdict => {
  const { key } = facts
  if (key.kind !== 'key') throw new Error('a request without a key was about to be admitted')
  const inUse = keyInUse(keyInUseFacts(facts, key.spkiHash))
  if (inUse !== null) return inUse
  // Last: of a request that would get in, only the WireGuard key of another uses up the token.
  const barred = wireguardBarred(facts.profile.value, before.id, facts.wireguard)
  if (barred !== null) return barred.code === 'WG_KEY_IN_USE' ? spentByRefusal(barred, facts) : barred
  const admission = admit(facts, key, before, before.epoch + 1)
  return admission.kind === 'refused' ? admission : { ...admission, supersedes }
}

/** What is committed with the order to an outside issuer: from then on the token answers this key only. */
export const intendEnrollment = (admission: Admission, spki: string): Intended => {
  const { facts, before } = admission
  return intended(admission, facts.node ?? formerOf(facts), keyInUseFacts(facts, spki), {
    reads: credentialReads(facts),
    writes: boundToKey(facts.credential, spki, before.id),
  })
}

/** `nextBearerHash` is used where the node registers a bearer token. */
export const recordEnrollment = (
  admission: Admission,
  issued: IssuedCertificate,
  nextBearerHash: NextBearerHash,
): Recorded => {
  const { facts, before, epoch } = admission
  const { credential, nowMs, domain, profile } = facts
  const certificate = certificateOf(admission, issued, null)
  const joined = wireguardJoined(profile.value, before.id, facts.wireguard, facts.wireguardHeld, nowMs)
  const node: Node = {
    ...before,
    epoch,
    wireguard: joined.wireguard,
    membership: {
      kind: 'enrolled',
      sinceMs: nowMs,
      slots: { current: slotOf(certificate), pending: null, retired: null },
    },
    ...hardwareFor(epoch, facts.reported.hardware, null),
    facts: facts.reported.facts ?? before.facts,
    assurance: strongest(profile.value.join.allOf),
    conditions: suspicionsKept(before, credential),
    approvals: [],
    counter: before.counter + 1,
    recovery: registeredRecovery(facts.recovery, profile.value, nextBearerHash, nowMs),
    repair: null,
    rehearsal: null,
  }
  const superseded = denialOfEpoch(before, {
    toleranceMs: domain.value.clockToleranceMs,
    atMs: nowMs,
    why: 'superseded by a new enrollment',
    reason: 'superseded',
  })
  const writes: Write[] = [
    ...(superseded === null ? [] : [{ put: 'denial', value: superseded } as const]),
    ...(joined.part.writes ?? []),
  ]
  if (credential.method === 'token') {
    const state = { kind: 'used', spki: issued.spki, node: node.id, atMs: nowMs } as const
    writes.push({ put: 'token', value: { ...credential.token.value, state } })
  }
  const reads = [...(joined.part.reads ?? []), ...credentialReads(facts)]
  const entries = entriesOf(admission, certificate, node)
  const keys = keyInUseFacts(facts, issued.spki)
  const rows = { before: facts.node ?? formerOf(facts), node, certificate }
  return recorded(admission, rows, keys, { reads, writes, entries })
}

/**
 * A new epoch starts clean but for suspicions: a second holder that gets in must not end the alert about itself. A token
 * that an operator made since is that operator's decision.
 */
const suspicionsKept = ({ conditions }: Node, credential: Credential): Node['conditions'] =>
  conditions.filter(
    (condition) =>
      isSuspicion(condition) &&
      (credential.method !== 'token' || credential.token.value.createdAtMs <= condition.sinceMs),
  )

const entriesOf = (admission: Admission, certificate: CertificateRow, node: Node): Change['entries'] => {
  const { facts, before, epoch } = admission
  const { credential, by, nowMs, reported } = facts
  const token = credential.method === 'token' ? credential.token.value.id : null
  const host = entry(
    by,
    nowMs,
    'host.enrolled',
    { node: before.id, epoch, token, issuer: certificate.issuer, serial: certificate.serial },
    {
      host_id: before.id,
      token_id: token,
      enrolled_by: 'system:enrollment-service',
      underlay_endpoint: node.wireguard === null ? null : underlayText(node.wireguard.endpoint),
      wireguard_pubkey_fingerprint:
        node.wireguard === null || facts.wireguard === null ? null : `SHA256:${facts.wireguard.brought.fingerprint}`,
      timestamp: isoTime(nowMs),
      method: credential.method,
      ...certificateWords(certificate),
      probe: typeof facts.probe === 'string' ? facts.probe : 'silent',
      probe_silent_ms: typeof facts.probe === 'string' ? null : Math.round(facts.probe.silentMs),
      recovery: node.recovery === null ? null : node.recovery.credential.kind,
      counter: node.counter,
      overlay_address: node.wireguard === null ? null : node.wireguard.address,
      reported_macs: reported.hardware.macs,
      reported_bmc_serial: reported.hardware.bmcSerial === null ? null : boundedText(reported.hardware.bmcSerial, 128),
    },
  )
  const others: EntryDraft[] = facts.node === null ? [registeredEntry(before, by, nowMs)] : []
  if (admission.supersedes !== 'nothing') {
    const body = {
      was: before.membership.kind,
      superseded: admission.supersedes,
      by_epoch: epoch,
      ...provenWords(admission),
      ...(isByHardwareAlone(admission) ? bothHolders(admission) : {}),
    }
    others.push(entry(by, nowMs, 'node.superseded', { node: before.id, epoch: before.epoch, token }, body))
  }
  return [...others, host]
}

const provenWords = (admission: Admission): EntryBody => {
  const proven = provenBy(admission)
  return proven === null ? {} : { proven_by: proven }
}

const strongest = (methods: readonly string[]): Assurance => {
  const order: readonly string[] = assurances
  const best = Math.max(...methods.map((method) => order.indexOf(method === 'tpm' ? 'ek-pinned' : method)))
  return assurances[best] ?? 'none'
}
