// A machine whose certificate no longer works gets a new identity: prove, read, decide, and issue.

import type { Attribution } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import type {
  PresentedCounter,
  PresentedRecovery,
  RecoveryRegistrationFacts,
} from '#domain/core/recovery-credential.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Repeated } from '#domain/identity/node-certificate.ts'
import {
  decideRecover,
  intendRecovery,
  recordRecovery,
  type AdmittedRecovery,
  type RecoverFacts,
} from '#domain/recovery/recovery.ts'
import { decideRecoveryWaits } from '#domain/recovery/recovery-waits.ts'
import type { VerifySignature } from '#pki/signature.ts'
import type { SightingJudge } from '#plane/continuity/judge-sighting.ts'
import type { Clock } from '#platform/clock.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { issue, readIssueFacts, type Issued, readKeyClaims, type Signers } from '#plane/identity/issue.ts'
import { keyInRequest } from '#plane/core/issued-certificate.ts'
import { credentialBan, proveRecovery } from './prove-recovery.ts'
import type { CopiedImages } from '#plane/identity/copied-images.ts'
import { checkRegistration, readCounter } from '#plane/identity/request-proofs.ts'
import { callerFacts, lastSeenFacts, type SecondHolders } from '#plane/identity/second-holder.ts'
import type { AdmissionQueue } from '#plane/limits/admission-queue.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { RecoverRequest } from '#wire/recovery/recovery-api.ts'
import type { RecoveryRegistration } from '#wire/identity/identity-api.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type RecoverParts = {
  readonly issuer: Issuer
  readonly orders: Signers['orders']
  readonly verifyProof: VerifySignature
  readonly recovery: RecoveryAuthority
  readonly domainName: string
  readonly anonymousBudget: CallerBudget
  readonly admission: AdmissionQueue
  readonly writeLimit: WriteLimit
  readonly secondHolders: Pick<SecondHolders, 'other' | 'settle'>
  readonly copiedImages: CopiedImages
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
  /** The revision of the roots of issuers that its agent has; null: it does not say. */
  readonly issuerRoots: number | null
  readonly source: string
  /** Of the story, not of the call. */
  readonly correlation: string
}

export const recoverNode = async (
  core: FlowCore,
  parts: RecoverParts,
  call: RecoverCall,
): Promise<Issued | Refusal> => {
  const node = await core.store.get('node', call.node)
  const credential = proveRecovery(core.clock, parts, node, { ...call, purpose: 'recover' })
  if (isRefusal(credential)) {
    // The correlation id of an anonymous caller is not used.
    const about = { node: node === null ? null : node.value.id }
    if (!parts.anonymousBudget.room(call.source))
      return { ...refuse('RATE_LIMITED'), retryAfterMs: parts.anonymousBudget.retryAfterMs(), about }
    // A store that has forgotten something does not know the newest credential, nor who enrolled since.
    await judgeSighting(parts, call, 'anonymous')
    return { ...credential, about }
  }
  await judgeSighting(parts, call, `node:${call.node}`)
  const about = { node: call.node, actor: `node:${call.node}`, correlation: call.correlation }
  const leave = parts.admission.enter()
  if (typeof leave !== 'function') return { ...leave, about }
  try {
    const outcome = await recoverWith(core, parts, call, credential)
    return outcome.kind === 'refused' ? { ...outcome, about } : outcome
  } finally {
    leave()
  }
}

const judgeSighting = async ({ sightingJudge }: RecoverParts, call: RecoverCall, actor: string): Promise<void> => {
  const { sighting, node, source } = call
  if (sighting !== null) await sightingJudge.judge(sighting, node, { actor, source, correlation: null })
}

/** What the request brings besides its credential, read once. */
type Brought = {
  readonly credential: PresentedRecovery
  readonly counter: PresentedCounter | null
  readonly key: RecoverFacts['key']
  readonly register: RecoveryRegistrationFacts | null
  readonly by: Attribution
}

const recoverWith = async (
  core: FlowCore,
  parts: RecoverParts,
  call: RecoverCall,
  credential: PresentedRecovery,
): Promise<Issued | Refusal> => {
  const brought = await bring(core.clock, parts, call, credential)
  if (isRefusal(brought)) return brought
  return issue(core, parts, {
    async decide() {
      const facts = await readFacts(core, parts, call, brought)
      return isRefusal(facts) ? facts : decide(core, parts, facts)
    },
    limit: async ({ before }) => parts.writeLimit.take(before.id),
    ...{ intend: intendRecovery, roots: call.issuerRoots, csr: call.csr, purpose: 'recovery' },
    record: async (recovery, signed, nextBearerHash) => recordRecovery(recovery, signed, nextBearerHash),
  })
}

const bring = async (
  clock: Clock,
  parts: RecoverParts,
  call: RecoverCall,
  credential: PresentedRecovery,
): Promise<Brought | Refusal> => {
  const counter = readCounter(parts, call.counter, call.node)
  if (isRefusal(counter)) return counter
  const checked = call.register === null ? null : checkRegistration(clock, parts, call.register, call.csr)
  if (isRefusal(checked)) return checked
  if (checked !== null && checked.node !== null && checked.node !== call.node)
    return refuse('CHALLENGE_INVALID', 'it was made for another node')
  return {
    credential,
    counter,
    key: await keyInRequest(parts.verifyProof, call.csr),
    register: checked === null ? null : checked.facts,
    by: { actor: `node:${call.node}`, source: call.source, correlation: call.correlation },
  }
}

const readFacts = async (
  core: FlowCore,
  parts: RecoverParts,
  call: RecoverCall,
  brought: Brought,
): Promise<RecoverFacts | Refusal> => {
  const { store } = core
  // Asked before the node is read: what it decides on has to be at least as new.
  const otherHolder = await parts.secondHolders.other(call.node, call.evidence.instance)
  if (isRefusal(otherHolder)) return otherHolder
  const { key } = brought
  const keyClaims = await readKeyClaims(store, call.node, key, brought.register)
  const node = await store.get('node', call.node)
  if (node === null) return refuse('RECOVERY_UNKNOWN')
  // Nothing is signed for a stand-in: the store would not write it.
  if (node.value.unreadable !== undefined) return refuse('NODE_QUARANTINED')
  const profile = await store.get('profile', node.value.profile)
  const domain = await store.get('domain', 'domain')
  if (profile === null || domain === null) return refuse('PROFILE_NOT_FOUND', node.value.profile)
  return {
    ...brought,
    ...(await readIssueFacts(core, parts.issuer, key)),
    node,
    profile,
    domain,
    keyClaims,
    credentialBan: await credentialBan(store, brought.credential),
    claimant: callerFacts(call.evidence, call.source, null),
    otherHolder,
    lastSeen: lastSeenFacts(node.value, await store.observation(call.node)),
    failure: call.failure,
  }
}

/** Settles a verdict that issues nothing, before its refusal is answered. */
const decide = async (
  core: FlowCore,
  parts: RecoverParts,
  facts: RecoverFacts,
): Promise<AdmittedRecovery | Repeated | Refusal | 'lost-race' | 'decide-again'> => {
  const verdict = decideRecover(facts)
  switch (verdict.kind) {
    case 'refused':
      await askForApproval(core, parts, facts, verdict)
      if (verdict.code === 'KEY_IN_USE') {
        await parts.copiedImages.raise(facts.node.value.id, facts.keyClaims, facts.by.source)
      }
      return verdict
    case 'duplicate':
      return parts.secondHolders.settle(facts.node.value.id, verdict.verdict)
    case 'repeat':
    case 'admitted':
      return verdict
  }
}

/** So that an operator who could approve it sees that it waits. A lost race is left alone: the machine asks again. */
const askForApproval = async (
  core: FlowCore,
  parts: RecoverParts,
  facts: RecoverFacts,
  refusal: Refusal,
): Promise<void> => {
  const verdict = decideRecoveryWaits({ ...facts, refusal })
  if (verdict.kind === 'unchanged' || parts.writeLimit.take(facts.node.value.id) !== null) return
  await commitOnce(core, verdict.change)
}
