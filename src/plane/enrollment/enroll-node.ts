// The path every identity takes: look the credential up, read, decide, sign, commit, publish.

import type { Attribution } from '#domain/core/decision.ts'
import type { Credential } from '#domain/enrollment/credential.ts'
import { certificateKey } from '#domain/core/certificate.ts'
import { enrolled } from '#domain/enrollment/enrolled.ts'
import { alertKey } from '#domain/alerts/alert.ts'
import { withAlert } from '#domain/alerts/alert-decisions.ts'
import type { Change } from '#domain/core/change.ts'
import { decideEnroll, type Admission, type EnrollFacts, type ProbeOutcome } from '#domain/enrollment/enrollment.ts'
import { isAlarming, supersessionAlert } from '#domain/enrollment/supersession.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { HardwareFacts, HardwareIdentity, Node, NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { WireguardBrought } from '#domain/network/wireguard-part.ts'
import { sortableId } from '#platform/random.ts'
import { commitOnce, nodeTries, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { Feed } from '#plane/core/feed.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { AgentEvidence } from '#wire/api/agent-evidence.ts'
import type { WireguardRequest } from '#wire/network/peers.ts'
import type { RecoveryRegistration } from '#wire/recovery/recovery-registration.ts'
import type { AdmissionQueue } from '#plane/limits/admission-queue.ts'
import { checkRegistration, type CheckedRegistration } from '#plane/identity/check-registration.ts'
import { commitIssued } from '#plane/identity/commit-issued.ts'
import { aboutOf, findCredential, isProven } from './find-credential.ts'
import type { ChallengeDeps } from '#plane/identity/issue-challenge.ts'
import { nextBearerHash, type HandedOut, type LineageDeps } from '#plane/identity/lineage.ts'
import { claimantFacts, lastSeenFacts } from '#plane/identity/holder-facts.ts'
import { holderUnknown } from '#plane/identity/live-holder.ts'
import type { NodePace } from '#plane/limits/node-pace.ts'
import { raiseCopiedImage, readKeyClaims } from '#plane/identity/key-claims.ts'
import { keyInRequest } from '#plane/identity/key-in-request.ts'
import { raiseSecondHolder } from '#plane/identity/raise-second-holder.ts'
import type { StrangersBudget } from '#plane/limits/strangers-budget.ts'
import { checkWireguard, readWireguard } from '#plane/network/wireguard-facts.ts'

export type EnrollDeps = ChallengeDeps &
  LineageDeps & {
    readonly store: Store
    readonly issuer: Issuer
    readonly feed: Feed
    readonly strangers: StrangersBudget
    readonly admission: AdmissionQueue
    readonly pace: NodePace
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
  /** Null: it wants no part in the WireGuard network. */
  readonly wireguard: WireguardRequest | null
  /** What it says of its process; null: an older agent, or one that says nothing before it has an identity. */
  readonly evidence: AgentEvidence | null
  readonly source: string
  readonly correlation: string
}

/** Base64 of the certificate's DER travels on; the listener makes the chain of it. */
export type Enrolled = {
  readonly kind: 'enrolled'
  readonly node: Node
  readonly profile: Profile
  readonly domain: DomainSettings
  readonly certificate: HandedOut & { readonly issuer: string; readonly der: string }
}

export const enrollNode = async (deps: EnrollDeps, call: EnrollCall): Promise<Enrolled | Refusal> => {
  const outcome = await judged(deps, call)
  if (outcome.kind !== 'refused' || call.method !== 'hardware') return outcome
  return { ...outcome, about: { ...outcome.about, hardware: call.hardware } }
}

const judged = async (deps: EnrollDeps, call: EnrollCall): Promise<Enrolled | Refusal> => {
  const credential = await findCredential(deps, call)
  if (!(await isProven(deps, credential)) && !heard(deps, call, credential)) {
    return { ...refuse('RATE_LIMITED'), retryAfterMs: deps.strangers.retryAfterMs() }
  }
  if (credential.kind === 'refused') return credential

  const leave = deps.admission.enter()
  if (typeof leave !== 'function') return leave
  try {
    const outcome = await admitted(deps, call, credential)
    return outcome.kind === 'refused' ? { ...outcome, about: { ...aboutOf(credential), ...outcome.about } } : outcome
  } finally {
    leave()
  }
}

/**
 * A machine that repeats its request brings a token that is taken. It must not be drowned out by strangers who bring
 * nothing, so what exists has a pace of its own behind the budget they share.
 */
const heard = (deps: EnrollDeps, call: EnrollCall, credential: Credential | Refusal): boolean =>
  deps.strangers.room(call.source) ||
  ('method' in credential && credential.method === 'token' && deps.pace.hurry(credential.token.value.id) === null)

const admitted = async (deps: EnrollDeps, call: EnrollCall, credential: Credential): Promise<Enrolled | Refusal> => {
  const registration = call.recovery === null ? null : checkRegistration(deps, call.recovery, call.csr)
  if (isRefusal(registration)) return registration
  const brought = call.wireguard === null ? null : checkWireguard(call.wireguard)
  if (isRefusal(brought)) return brought
  const key = keyInRequest(call.csr)
  const by = { actor: aboutOf(credential).actor, source: call.source, correlation: call.correlation }
  let probed: { readonly epoch: number; readonly answer: ProbeOutcome } | null = null
  let found: Credential | null = credential
  return retryLostRaces(nodeTries, async () => {
    const read = await readFacts(deps, call, found, { key, registration, brought }, by)
    found = null
    if ('code' in read) return read
    // Silence of one holder says nothing about another that has taken its place meanwhile.
    const facts: EnrollFacts =
      probed !== null && probed.epoch === read.node?.value.epoch ? { ...read, probe: probed.answer } : read
    const verdict = decideEnroll(facts)
    switch (verdict.kind) {
      case 'refused':
        if (verdict.code === 'ALREADY_ACTIVE') await alarm(deps, facts, by)
        if (verdict.code === 'KEY_IN_USE') await raiseCopiedImage(deps, facts.nodeId, facts.keyClaims, by.source)
        return verdict
      case 'refused-and-spent': {
        const outcome = await commitOnce(deps, verdict.change)
        if (outcome === 'lost-race') return outcome
        return { ...verdict.refusal, about: { journaled: true } }
      }
      case 'repeat': {
        const spent = verdict.spends === null ? null : await commitOnce(deps, verdict.spends)
        if (spent === 'lost-race') return spent
        const stored = await deps.store.get('certificate', certificateKey(verdict.slot.issuer, verdict.slot.serial))
        if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
        return enrolledAs(facts, verdict.node.value, stored.value)
      }
      case 'probe': {
        const { id, epoch } = verdict.node.value
        const answer = await deps.probe(id, facts.profile.value.probeSilenceMs)
        if (answer === 'unknown') return holderUnknown(id)
        probed = { epoch, answer }
        return 'decide-again'
      }
      case 'admitted': {
        const wait = facts.credential.method === 'hardware' ? await joinLimit(deps, call, verdict.before.id) : null
        if (wait !== null) return wait
        const issued = await deps.issuer.sign(verdict.order)
        const { change, node } = enrolled(verdict, issued, nextBearerHash(deps, verdict.before, issued.spki))
        const outcome = await commitIssued(deps, issued, await alerted(deps, verdict, change))
        if (outcome === 'lost-race') return outcome
        return enrolledAs(facts, node, issued)
      }
    }
  })
}

/**
 * A token admits once; hardware addresses can be presented again and again, by every machine that has seen them. Such joins
 * are limited apart from what the node asks for with its own certificate, and those from the source it was last seen at
 * apart from all others: rivals who know a MAC cannot use up what the node itself needs.
 */
const joinLimit = async (deps: EnrollDeps, { source }: EnrollCall, node: NodeId): Promise<Refusal | null> => {
  const { source: lastSource } = await deps.store.observation(node)
  return deps.pace.hurry(lastSource === source ? `${node} joins from ${source}` : `${node} joins`)
}

const alerted = async (deps: EnrollDeps, admission: Admission, change: Change): Promise<Change> => {
  if (!isAlarming(admission)) return change
  const existing = await deps.store.get(
    'alert',
    alertKey({ kind: 'superseded_by_hardware', subject: admission.before.id }),
  )
  return withAlert(change, supersessionAlert(admission, existing, sortableId(admission.facts.nowMs, deps.random)))
}

const enrolledAs = (facts: EnrollFacts, node: Node, certificate: Enrolled['certificate']): Enrolled => ({
  kind: 'enrolled',
  node,
  profile: facts.profile.value,
  domain: facts.domain.value,
  certificate,
})

/** What the request says, once it is known to make sense. */
type Checked = {
  readonly key: EnrollFacts['key']
  readonly registration: CheckedRegistration | null
  readonly brought: WireguardBrought | null
}

/** `credential` is null when a race was lost: what it said may have changed, so it is looked up again. */
const readFacts = async (
  deps: EnrollDeps,
  call: EnrollCall,
  credential: Credential | null,
  { key, registration, brought }: Checked,
  by: Attribution,
): Promise<EnrollFacts | Refusal> => {
  const found = credential ?? (await findCredential(deps, call))
  if ('code' in found) return found
  const nodeId = nodeIdOf(deps, call, found)
  const provenFor = registration === null ? null : registration.node
  if (provenFor !== null && provenFor !== nodeId) return refuse('CHALLENGE_INVALID', 'it was made for another node')
  const keyClaims = await readKeyClaims(deps.store, key, registration === null ? null : registration.facts)
  // What was found by hardware was read before the claims, and may be older than a claim of the same commit.
  const isRead = found.method === 'hardware' && keyClaims.certified === null && keyClaims.registered === null
  const node = isRead ? found.node : await deps.store.get('node', nodeId)
  if (found.method === 'token' && found.standing === 'unused' && found.token.value.scope.kind === 'domain' && node) {
    return refuse('NODE_ALREADY_ENROLLED', 'a token of the domain registers a new node and cannot speak for one')
  }
  const profileName = node === null && found.method === 'token' ? found.token.value.profile : node?.value.profile
  const profile = profileName === undefined ? null : await deps.store.get('profile', profileName)
  const domain = await deps.store.get('domain', 'domain')
  if (profile === null || domain === null) return refuse('PROFILE_NOT_FOUND', profileName ?? null)
  const nowMs = deps.clock.nowMs()
  const asked = { brought, node, nodeId, profile: profile.value, domain: domain.value, nowMs }
  return {
    ...(await readWireguard(deps.store, asked)),
    credential: found,
    node,
    nodeId,
    profile,
    domain,
    key,
    keyBan: key.kind === 'key' ? await deps.store.get('key-ban', key.spkiHash) : null,
    keyClaims,
    reported: { hardware: call.hardware, facts: call.facts },
    recovery: registration === null ? null : registration.facts,
    probe: 'not-tried',
    holders: node === null || found.method !== 'hardware' ? null : await holdersOf(deps, call, node.value),
    withdrawn: deps.issuer.withdrawnIssuers(),
    orderId: sortableId(nowMs, deps.random),
    by,
    nowMs,
  }
}

const holdersOf = async (deps: EnrollDeps, call: EnrollCall, node: Node): Promise<EnrollFacts['holders']> => {
  const { macs, bmcSerial } = call.hardware
  // What it joins by is what it has shown; its evidence may say otherwise.
  const claimant = { ...claimantFacts(call.evidence, call.source, null), macs, bmcSerial }
  return { claimant, holder: lastSeenFacts(node, await deps.store.observation(node.id)) }
}

const nodeIdOf = (deps: EnrollDeps, call: EnrollCall, credential: Credential): NodeId => {
  if (credential.method === 'hardware') return credential.node.value.id
  const { scope, state } = credential.token.value
  if (scope.kind === 'node') return scope.node
  if (state.kind === 'used' || state.kind === 'bound') return state.node
  return call.askedId ?? `node-${sortableId(deps.clock.nowMs(), deps.random).toLowerCase()}`
}

const alarm = async (deps: EnrollDeps, facts: EnrollFacts, by: Attribution): Promise<void> => {
  if (facts.node === null) return
  await raiseSecondHolder(deps, {
    node: facts.node.value.id,
    condition: 'spoof_suspected',
    reason: 'another key asked for this identity while the node is active',
    evidence: {
      source: by.source,
      method: facts.credential.method,
      key: facts.key.kind === 'key' ? `SHA256:${facts.key.spkiHash}` : null,
    },
    by,
  })
}
