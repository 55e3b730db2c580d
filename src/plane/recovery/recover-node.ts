// A machine whose certificate cannot help it any more gets a new identity: prove, read, decide, sign, commit, publish.

import { certificateKey } from '#domain/core/certificate.ts'
import type { Attribution } from '#domain/core/decision.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { recovered } from '#domain/recovery/recovered.ts'
import type {
  PresentedCounter,
  PresentedRecovery,
  RecoveryRegistrationFacts,
} from '#domain/core/recovery-credential.ts'
import {
  decideRecover,
  decideRecoveryWaits,
  type RecoverFacts,
  type RecoverVerdict,
} from '#domain/recovery/recovery.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { sortableId } from '#platform/random.ts'
import type { Feed } from '#plane/core/feed.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { AgentEvidence } from '#wire/api/agent-evidence.ts'
import type { RecoverRequest } from '#wire/recovery/recovery-api.ts'
import type { RecoveryRegistration } from '#wire/recovery/recovery-registration.ts'
import { commitOnce, nodeTries, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { AdmissionQueue } from '#plane/limits/admission-queue.ts'
import { checkRegistration } from '#plane/identity/check-registration.ts'
import { commitIssued } from '#plane/identity/commit-issued.ts'
import type { Enrolled } from '#plane/enrollment/enroll-node.ts'
import { claimantFacts, lastSeenFacts, liveHolderFacts } from '#plane/identity/holder-facts.ts'
import type { ChallengeDeps } from '#plane/identity/issue-challenge.ts'
import { credentialBan, raiseCopiedImage, readKeyClaims } from '#plane/identity/key-claims.ts'
import { keyInRequest } from '#plane/identity/key-in-request.ts'
import { nextBearerHash, type LineageDeps } from '#plane/identity/lineage.ts'
import { holderUnknown, type FindOtherHolder } from '#plane/identity/live-holder.ts'
import type { NodePace } from '#plane/limits/node-pace.ts'
import { proveRecovery } from './prove-recovery.ts'
import type { SightingJudge } from '#plane/continuity/judge-sighting.ts'
import { settleDuplicate, type DuplicateDeps } from '#plane/identity/settle-duplicate.ts'
import { readCounter } from '#plane/identity/signed-counter.ts'
import type { StrangersBudget } from '#plane/limits/strangers-budget.ts'

export type RecoverDeps = ChallengeDeps &
  LineageDeps &
  DuplicateDeps & {
    readonly store: Store
    readonly issuer: Issuer
    readonly feed: Feed
    readonly strangers: StrangersBudget
    readonly admission: AdmissionQueue
    readonly pace: NodePace
    readonly findOtherHolder: FindOtherHolder
    readonly sightingJudge: SightingJudge
  }

export type RecoverCall = {
  readonly node: NodeId
  readonly credential: RecoverRequest['credential']
  readonly counter: string | null
  readonly csr: string
  readonly failure: RecoverFacts['failure']
  readonly evidence: AgentEvidence
  readonly register: RecoveryRegistration | null
  /** The newest it has seen of the journal; null: it does not say. */
  readonly sighting: string | null
  readonly source: string
  /** Of the story, not of the call. */
  readonly correlation: string
}

export const recoverNode = async (deps: RecoverDeps, call: RecoverCall): Promise<Enrolled | Refusal> => {
  const node = await deps.store.get('node', call.node)
  const credential = proveRecovery(deps, node, { ...call, purpose: 'recover' })
  if (isRefusal(credential)) {
    // The story it claims to belong to is not taken from somebody who has proved nothing.
    const about = { node: node === null ? null : node.value.id }
    if (!deps.strangers.room(call.source))
      return { ...refuse('RATE_LIMITED'), retryAfterMs: deps.strangers.retryAfterMs(), about }
    // A store that has forgotten something does not know the newest credential, nor who enrolled since.
    await judgeSighting(deps, call, 'anonymous')
    return { ...credential, about }
  }
  await judgeSighting(deps, call, `node:${call.node}`)
  const about = { node: call.node, actor: `node:${call.node}`, correlation: call.correlation }
  const leave = deps.admission.enter()
  if (typeof leave !== 'function') return { ...leave, about }
  try {
    const outcome = await admitted(deps, call, credential)
    return outcome.kind === 'refused' ? { ...outcome, about } : outcome
  } finally {
    leave()
  }
}

const judgeSighting = async (deps: RecoverDeps, call: RecoverCall, actor: string): Promise<void> => {
  const { sighting, node, source } = call
  if (sighting !== null) await deps.sightingJudge.judge(sighting, node, { actor, source, correlation: null })
}

/** What the request brings besides its proof, read once. */
type Brought = {
  readonly credential: PresentedRecovery
  readonly counter: PresentedCounter | null
  readonly key: RecoverFacts['key']
  readonly register: RecoveryRegistrationFacts | null
  readonly by: Attribution
}

const admitted = async (
  deps: RecoverDeps,
  call: RecoverCall,
  credential: PresentedRecovery,
): Promise<Enrolled | Refusal> => {
  const brought = bring(deps, call, credential)
  if (isRefusal(brought)) return brought
  return retryLostRaces(nodeTries, async () => {
    const facts = await readFacts(deps, call, brought)
    return isRefusal(facts) ? facts : carryOut(deps, facts, decideRecover(facts))
  })
}

const bring = (deps: RecoverDeps, call: RecoverCall, credential: PresentedRecovery): Brought | Refusal => {
  const counter = readCounter(deps, call.counter, call.node)
  if (isRefusal(counter)) return counter
  const checked = call.register === null ? null : checkRegistration(deps, call.register, call.csr)
  if (isRefusal(checked)) return checked
  if (checked !== null && checked.node !== null && checked.node !== call.node)
    return refuse('CHALLENGE_INVALID', 'it was made for another node')
  return {
    credential,
    counter,
    key: keyInRequest(call.csr),
    register: checked === null ? null : checked.facts,
    by: { actor: `node:${call.node}`, source: call.source, correlation: call.correlation },
  }
}

const readFacts = async (deps: RecoverDeps, call: RecoverCall, brought: Brought): Promise<RecoverFacts | Refusal> => {
  const { store, clock } = deps
  // Asked before the node is read: what it decides on has to be at least as new.
  const live = await deps.findOtherHolder(call.node, call.evidence.instance)
  if (live === 'unknown') return holderUnknown(call.node)
  const { key } = brought
  const keyClaims = await readKeyClaims(store, key, brought.register)
  const node = await store.get('node', call.node)
  if (node === null) return refuse('RECOVERY_UNKNOWN')
  // Nothing is signed for a stand-in: what it would write is not taken.
  if (node.value.unreadable !== undefined) return refuse('NODE_QUARANTINED')
  const profile = await store.get('profile', node.value.profile)
  const domain = await store.get('domain', 'domain')
  if (profile === null || domain === null) return refuse('PROFILE_NOT_FOUND', node.value.profile)
  return {
    ...brought,
    node,
    profile,
    domain,
    keyBan: key.kind === 'key' ? await store.get('key-ban', key.spkiHash) : null,
    keyClaims,
    credentialBan: await credentialBan(store, brought.credential),
    claimant: claimantFacts(call.evidence, call.source, null),
    otherHolder: live === null ? null : liveHolderFacts(live),
    lastSeen: lastSeenFacts(node.value, await store.observation(call.node)),
    failure: call.failure,
    withdrawn: deps.issuer.withdrawnIssuers(),
    orderId: sortableId(clock.nowMs(), deps.random),
    nowMs: clock.nowMs(),
  }
}

const carryOut = async (
  deps: RecoverDeps,
  facts: RecoverFacts,
  verdict: RecoverVerdict,
): Promise<Enrolled | Refusal | 'lost-race' | 'decide-again'> => {
  switch (verdict.kind) {
    case 'refused':
      await askForApproval(deps, facts, verdict)
      if (verdict.code === 'KEY_IN_USE') {
        await raiseCopiedImage(deps, facts.node.value.id, facts.keyClaims, facts.by.source)
      }
      return verdict
    case 'repeat': {
      const stored = await deps.store.get('certificate', certificateKey(verdict.slot.issuer, verdict.slot.serial))
      if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
      return given(facts, verdict.node.value, stored.value)
    }
    case 'duplicate':
      return settleDuplicate(deps, facts.node.value.id, verdict.verdict)
    case 'admitted': {
      const wait = deps.pace.hurry(verdict.before.id)
      if (wait !== null) return wait
      const issued = await deps.issuer.sign(verdict.order)
      const { change, node } = recovered(verdict, issued, nextBearerHash(deps, verdict.before, issued.spki))
      const outcome = await commitIssued(deps, issued, change)
      if (outcome === 'lost-race') return outcome
      return given(facts, node, issued)
    }
  }
}

/** So that whoever could approve it sees that it waits. A lost race is left alone: the machine asks again. */
const askForApproval = async (deps: RecoverDeps, facts: RecoverFacts, refusal: Refusal): Promise<void> => {
  const verdict = decideRecoveryWaits({ ...facts, refusal })
  if (verdict.kind === 'unchanged' || deps.pace.hurry(facts.node.value.id) !== null) return
  await commitOnce(deps, verdict.change)
}

const given = (
  {
    profile,
    domain,
  }: { readonly profile: { readonly value: Profile }; readonly domain: { readonly value: DomainSettings } },
  node: Node,
  certificate: Enrolled['certificate'],
): Enrolled => ({ kind: 'enrolled', node, profile: profile.value, domain: domain.value, certificate })
