// A machine gets an identity: look its credential up, charge it if it proves nothing, read, decide, and issue.

import { withPart, type Attribution } from '#domain/core/change.ts'
import {
  aboutCredential,
  aboutToken,
  isProven,
  judgeHardware,
  judgeToken,
  registersNew,
  type Credential,
} from '#domain/enrollment/credential.ts'
import {
  decideEnroll,
  intendEnrollment,
  recordEnrollment,
  type Admission,
  type EnrollFacts,
  type ProbeOutcome,
} from '#domain/enrollment/enrollment.ts'
import { provenBy } from '#domain/enrollment/supersession.ts'
import { tokenSecretShape } from '#domain/core/token.ts'
import type { HardwareFacts, HardwareIdentity, Node, NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { Recorded, Repeated } from '#domain/identity/node-certificate.ts'
import type { WireguardBrought } from '#domain/network/wireguard-part.ts'
import type { VerifySignature } from '#pki/signature.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { sortableId } from '#platform/random.ts'
import { formerNode } from '#plane/core/former-node.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { everyProgramEnded } from '#plane/core/programs-of-node.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { WireguardRequest } from '#wire/network/peers.ts'
import type { IdentityProof, RecoveryRegistration } from '#wire/identity/identity-api.ts'
import type { AdmissionQueue } from '#plane/limits/admission-queue.ts'
import { issue, readIssueFacts, type Issued, readKeyClaims, type Signers } from '#plane/identity/issue.ts'
import { keyInRequest } from '#plane/core/issued-certificate.ts'
import { holderUnknown } from '#plane/identity/holders.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import type { CopiedImages } from '#plane/identity/copied-images.ts'
import {
  checkIdentityProof,
  checkRegistration,
  type CheckedProof,
  type CheckedRegistration,
} from '#plane/identity/request-proofs.ts'
import { callerFacts, lastSeenFacts, type SecondHolders } from '#plane/identity/second-holder.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import { reportRefusal, withSupersessionAlert } from './enrollment-alerts.ts'
import { checkWireguard, readWireguard } from '#plane/network/wireguard-part.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type EnrollParts = {
  readonly issuer: Issuer
  readonly orders: Signers['orders']
  readonly verifyProof: VerifySignature
  readonly recovery: RecoveryAuthority
  readonly domainName: string
  readonly anonymousBudget: CallerBudget
  readonly admission: AdmissionQueue
  readonly writeLimit: WriteLimit
  readonly secondHolders: Pick<SecondHolders, 'report' | 'refuseCopy'>
  readonly copiedImages: CopiedImages
  /** Pings whatever channel the node has open. */
  readonly probe: (node: NodeId, enoughMs: number) => Promise<Exclude<ProbeOutcome, 'not-tried'> | 'unknown'>
}

export type EnrollCall = {
  readonly method: 'token' | 'hardware'
  readonly secret: string | null
  readonly askedId: NodeId | null
  readonly hardware: HardwareIdentity
  readonly facts: HardwareFacts | null
  readonly csr: string
  /** By what it will recover; null: it does not say. */
  readonly recovery: RecoveryRegistration | null
  /** Of the identity it has; null: it brings none. */
  readonly identityProof: IdentityProof | null
  /** Null: it wants no part in the WireGuard network. */
  readonly wireguard: WireguardRequest | null
  /** What it says of its process; null: an older agent, or one that says nothing before it has an identity. */
  readonly evidence: AgentEvidence | null
  readonly source: string
  readonly correlation: string
}

export const enrollNode = async (core: FlowCore, parts: EnrollParts, call: EnrollCall): Promise<Issued | Refusal> => {
  const outcome = await judged(core, parts, call)
  if (outcome.kind !== 'refused' || call.method !== 'hardware') return outcome
  return { ...outcome, about: { ...outcome.about, hardware: call.hardware } }
}

const judged = async (core: FlowCore, parts: EnrollParts, call: EnrollCall): Promise<Issued | Refusal> => {
  const found = await findCredential(core, call)
  const credential = isRefusal(found) ? null : found
  const proven = credential !== null && isProven(credential, await profileOf(core, credential))
  if (!proven && !isWithinBudget(parts, call, credential)) {
    return { ...refuse('RATE_LIMITED'), retryAfterMs: parts.anonymousBudget.retryAfterMs() }
  }
  if (isRefusal(found)) return found

  const leave = parts.admission.enter()
  if (typeof leave !== 'function') return leave
  try {
    const outcome = await enrollWith(core, parts, call, found)
    return outcome.kind === 'refused' ? { ...outcome, about: { ...aboutCredential(found), ...outcome.about } } : outcome
  } finally {
    leave()
  }
}

type Found = Credential & { readonly kind: 'found' }

/** Before anything of the request costs more than a read. */
const findCredential = async (core: FlowCore, call: EnrollCall): Promise<Found | Refusal> => {
  const judged =
    call.method === 'token'
      ? await findToken(core, call)
      : judgeHardware(call.hardware, await core.store.nodesByHardware(call.hardware))
  return 'code' in judged ? judged : { ...judged, kind: 'found' }
}

const findToken = async (core: FlowCore, { secret }: EnrollCall): Promise<Credential | Refusal> => {
  if (secret === null || !tokenSecretShape.test(secret)) return refuseField('TOKEN_MALFORMED', 'enrollment_token')
  const token = await core.store.get('token', sha256Hex(secret))
  const { clockToleranceMs } = (await domainSettingsRow(core.store)).value
  const judged = judgeToken(token, core.clock.nowMs(), clockToleranceMs)
  // A caller with an expired or withdrawn token knew its secret: the journal says which token it was.
  return 'code' in judged && token !== null ? { ...judged, about: aboutToken(token.value) } : judged
}

/** Asked for only where the credential is hardware. */
const profileOf = async ({ store }: FlowCore, credential: Credential): Promise<Profile | null> => {
  if (credential.method === 'token') return null
  return (await store.get('profile', credential.node.value.profile))?.value ?? null
}

/**
 * A machine that repeats its request brings a token that is taken. Callers who bring nothing must not drown it out, so what
 * exists has a rate limit of its own behind the budget they share.
 */
const isWithinBudget = (parts: EnrollParts, { source }: EnrollCall, credential: Credential | null): boolean =>
  parts.anonymousBudget.room(source) ||
  (credential?.method === 'token' && parts.writeLimit.take(credential.token.value.id) === null)

const enrollWith = async (
  core: FlowCore,
  parts: EnrollParts,
  call: EnrollCall,
  credential: Credential,
): Promise<Issued | Refusal> => {
  const checked = await checkRequest(core, parts, call)
  if (isRefusal(checked)) return checked
  const by = { actor: aboutCredential(credential).actor, source: call.source, correlation: call.correlation }
  // After a lost race it is looked up again: it may have changed.
  let known: Credential | null = credential
  let probed: Probed | null = null
  return issue(core, parts, {
    async decide() {
      const read = await readFacts(core, parts.issuer, call, known, checked, by)
      known = null
      if ('code' in read) return read
      // Silence of one holder says nothing about another that has taken its place meanwhile.
      const isProbed = probed !== null && probed.epoch === read.node?.value.epoch
      const facts: EnrollFacts = isProbed && probed !== null ? { ...read, probe: probed.answer } : read
      const verdict = await decide(core, parts, call, facts)
      if (verdict === 'lost-race' || verdict.kind !== 'probed') return verdict
      probed = verdict
      return 'decide-again'
    },
    limit: async ({ facts, before }) =>
      facts.credential.method === 'hardware' ? joinLimit(core, parts.writeLimit, call, before.id) : null,
    ...{ intend: intendEnrollment, roots: 'with-answer', csr: call.csr, purpose: 'enrollment' },
    record: async (admission, signed, nextBearerHash) =>
      withSupersessionAlert(
        core,
        admission,
        await withProgramsEnded(core, admission, recordEnrollment(admission, signed, nextBearerHash)),
      ),
  })
}

/** What the request says, once it is known to make sense. */
type Checked = {
  readonly kind: 'checked'
  readonly key: EnrollFacts['key']
  readonly registration: CheckedRegistration | null
  readonly proof: CheckedProof | null
  readonly brought: WireguardBrought | null
}

const checkRequest = async (
  core: FlowCore,
  parts: EnrollParts,
  { recovery, identityProof, wireguard, csr }: EnrollCall,
): Promise<Checked | Refusal> => {
  const registration = recovery === null ? null : checkRegistration(core.clock, parts, recovery, csr)
  if (isRefusal(registration)) return registration
  const proof = identityProof === null ? null : checkIdentityProof(core.clock, parts, identityProof, csr)
  if (isRefusal(proof)) return proof
  const brought = wireguard === null ? null : checkWireguard(wireguard)
  if (isRefusal(brought)) return brought
  return { kind: 'checked', key: await keyInRequest(parts.verifyProof, csr), registration, proof, brought }
}

type Probed = { readonly kind: 'probed'; readonly epoch: number; readonly answer: ProbeOutcome }

/** Settles a verdict that issues nothing, before its refusal is answered. */
const decide = async (
  core: FlowCore,
  parts: EnrollParts,
  call: EnrollCall,
  facts: EnrollFacts,
): Promise<Admission | Repeated | Refusal | Probed | 'lost-race'> => {
  const verdict = decideEnroll(facts)
  switch (verdict.kind) {
    case 'refused':
      await reportRefusal(core, parts, call, facts, verdict)
      return verdict
    case 'refused-and-spent': {
      const outcome = await commitOnce(core, verdict.change)
      return outcome === 'lost-race' ? outcome : { ...verdict.refusal, about: { journaled: true } }
    }
    case 'probe': {
      const { id, epoch } = verdict.node.value
      const answer = await parts.probe(id, facts.profile.value.probeSilenceMs)
      return answer === 'unknown' ? holderUnknown(id) : { kind: 'probed', epoch, answer }
    }
    case 'repeat':
      return verdict
    case 'admitted':
      return (await refuseLiveCopy(parts.secondHolders, call, verdict)) ?? verdict
  }
}

/** A copy of the state folder proves the same key: of two processes the one that answers on its channel stays (ruling 6). */
const refuseLiveCopy = async (
  secondHolders: EnrollParts['secondHolders'],
  { evidence, source, correlation }: EnrollCall,
  admission: Admission,
): Promise<Refusal | null> => {
  if (provenBy(admission) !== 'certificate key') return null
  const caller = { node: admission.before.id, evidence, source, correlation, serial: null }
  return secondHolders.refuseCopy(caller, 'second-instance')
}

/**
 * A token admits once; hardware addresses can be presented again and again, by every machine that has seen them. Such joins
 * are limited apart from what the node asks for with its own certificate, and those from the source it was last seen at
 * apart from all others: rivals who know a MAC cannot use up what the node itself needs.
 */
const joinLimit = async (
  core: FlowCore,
  writeLimit: WriteLimit,
  { source }: EnrollCall,
  node: NodeId,
): Promise<Refusal | null> => {
  const { source: lastSource } = await core.store.observation(node)
  return writeLimit.take(lastSource === source ? `${node} joins from ${source}` : `${node} joins`)
}

/**
 * A machine that takes the place of another by a token made with `--replace` ends the programs of that other. In any other new
 * epoch they stay good until the new ones are in place.
 */
const withProgramsEnded = async (core: FlowCore, { facts }: Admission, record: Recorded): Promise<Recorded> => {
  const { credential, node, domain, by, nowMs } = facts
  if (node === null || credential.method !== 'token' || !credential.token.value.replace) return record
  const toleranceMs = domain.value.clockToleranceMs
  const ending = { why: 'its node was replaced', reason: 'superseded', toleranceMs, by, nowMs } as const
  const ended = await everyProgramEnded(core.store, node.value.id, ending)
  return { ...record, change: withPart(record.change, ended) }
}

/** `credential` is null when a race was lost: what it said may have changed, so it is looked up again. */
const readFacts = async (
  core: FlowCore,
  issuer: Issuer,
  call: EnrollCall,
  credential: Credential | null,
  { key, registration, proof, brought }: Checked,
  by: Attribution,
): Promise<EnrollFacts | Refusal> => {
  const found = credential ?? (await findCredential(core, call))
  if ('code' in found) return found
  const nodeId = nodeIdOf(core, call, found)
  const provenFor = registration === null ? null : registration.node
  if (provenFor !== null && provenFor !== nodeId) return refuse('CHALLENGE_INVALID', 'it was made for another node')
  const keyClaims = await readKeyClaims(core.store, nodeId, key, registration === null ? null : registration.facts)
  // A proof for another node is of no use here: the machine had that identity before.
  const proven = proof?.node === nodeId ? await readProof(core, proof) : null
  // What was found by hardware was read before the claims, and may be older than a claim of the same commit.
  const isRead =
    found.method === 'hardware' && keyClaims.certified === null && keyClaims.registered === null && proven === null
  const node = isRead ? found.node : await core.store.get('node', nodeId)
  if (found.method === 'token' && node !== null && registersNew(found.token.value)) {
    return refuse('NODE_ALREADY_ENROLLED', 'a token of the domain registers a new node and cannot speak for one')
  }
  const profileName = node === null && found.method === 'token' ? found.token.value.profile : node?.value.profile
  const profile = profileName === undefined ? null : await core.store.get('profile', profileName)
  const domain = await core.store.get('domain', 'domain')
  if (profile === null || domain === null) return refuse('PROFILE_NOT_FOUND', profileName ?? null)
  // A token of the domain that was made while its profile was being deleted.
  if (node === null && profile.value.deletedAtMs !== null) return refuse('PROFILE_NOT_FOUND', profile.value.name)
  const common = await readIssueFacts(core, issuer, key)
  const asked = { brought, node, nodeId, profile: profile.value, domain: domain.value, nowMs: common.nowMs }
  return {
    ...common,
    ...(await readWireguard(core.store, asked)),
    credential: found,
    node,
    former: node === null ? await formerNode(core.store, nodeId) : null,
    nodeId,
    profile,
    domain,
    keyClaims,
    reported: { hardware: call.hardware, facts: call.facts },
    recovery: registration === null ? null : registration.facts,
    proof: proven,
    probe: 'not-tried',
    holders: node === null || found.method !== 'hardware' ? null : await holdersOf(core, call, node.value),
    by,
  }
}

const readProof = async ({ store }: FlowCore, { spki, counter }: CheckedProof): Promise<EnrollFacts['proof']> => {
  const [claim, ban] = await Promise.all([store.get('key-claim', spki), store.get('key-ban', spki)])
  return { spki, counter, claim, ban }
}

const holdersOf = async (core: FlowCore, call: EnrollCall, node: Node): Promise<EnrollFacts['holders']> => {
  const { macs, bmcSerial } = call.hardware
  // What it joins by is what it has shown; its evidence may say otherwise.
  const claimant = { ...callerFacts(call.evidence, call.source, null), macs, bmcSerial }
  return { claimant, holder: lastSeenFacts(node, await core.store.observation(node.id)) }
}

const nodeIdOf = (core: FlowCore, call: EnrollCall, credential: Credential): NodeId => {
  if (credential.method === 'hardware') return credential.node.value.id
  const { scope, state } = credential.token.value
  if (scope.kind === 'node') return scope.node
  if (state.kind === 'used' || state.kind === 'bound') return state.node
  return call.askedId ?? `node-${sortableId(core.clock.nowMs(), core.random).toLowerCase()}`
}
