// A node whose certificate works gets its next one: read, decide, and issue.

import type { Attribution } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Repeated } from '#domain/identity/node-certificate.ts'
import {
  decideRenew,
  intendRenewal,
  recordRenewal,
  type Renewal,
  type RenewFacts,
  type RenewVerdict,
} from '#domain/identity/renewal.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import type { VerifySignature } from '#pki/signature.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { RecoveryRegistration } from '#wire/identity/identity-api.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import { issue, readIssueFacts, type Issued, readKeyClaims, type Signers } from './issue.ts'
import { keyInRequest } from '#plane/core/issued-certificate.ts'
import type { CopiedImages } from './copied-images.ts'
import { checkRegistration, readRenewalCounter } from './request-proofs.ts'
import { callerFacts, lastSeenFacts, type SecondHolders } from './second-holder.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type RenewParts = {
  readonly issuer: Issuer
  readonly orders: Signers['orders']
  readonly verifyProof: VerifySignature
  readonly recovery: RecoveryAuthority
  readonly domainName: string
  readonly writeLimit: WriteLimit
  readonly secondHolders: SecondHolders
  readonly copiedImages: CopiedImages
}

export type RenewCall = {
  readonly csr: string
  /** Null from agents that were never given one. */
  readonly counter: string | null
  /** By what it will recover; null: it does not say. */
  readonly recovery: RecoveryRegistration | null
  /** The revision that its agent has; null: it does not say. */
  readonly issuerRoots: number | null
  readonly evidence: AgentEvidence | null
  readonly correlation: string
}

export const renewCertificate = async (
  core: FlowCore,
  parts: RenewParts,
  principal: NodePrincipal,
  call: RenewCall,
): Promise<Issued | Refusal> => {
  const by = { actor: actorOf(principal), source: principal.source, correlation: call.correlation }
  const outcome = await attemptRenewal(core, parts, principal, call, by)
  if (outcome.kind !== 'refused') return outcome
  if (outcome.code === 'LINEAGE_CONFLICT' || outcome.code === 'SERIAL_MISMATCH') {
    await parts.secondHolders.report({
      node: principal.id,
      condition: 'duplicate_identity',
      reason: 'two machines with the same certificate asked to renew it',
      evidence: { source: principal.source, serial: principal.credential.serial, code: outcome.code },
      by,
    })
  }
  return outcome
}

const attemptRenewal = async (
  core: FlowCore,
  parts: RenewParts,
  principal: NodePrincipal,
  call: RenewCall,
  by: Attribution,
): Promise<Issued | Refusal> => {
  const counter = readRenewalCounter(parts, call.counter, principal.id)
  if (isRefusal(counter)) return counter
  const registration = registrationIn(core, parts, principal, call)
  if (isRefusal(registration)) return registration
  const key = await keyInRequest(parts.verifyProof, call.csr)
  const read = async (): Promise<RenewFacts | Refusal> => {
    // Asked before the node is read: what is decided on has to be at least as new.
    const holders = await holdersOf(parts.secondHolders, principal, call.evidence)
    if (isRefusal(holders)) return holders
    const keyClaims = await readKeyClaims(core.store, principal.id, key, registration.facts)
    const inUse = await useCertificate(core, principal, call.correlation)
    if (inUse.kind === 'refused') return inUse
    const { node, profile, domain } = inUse
    const common = await readIssueFacts(core, parts.issuer, key)
    const brought = { counter, register: registration.facts, principal, by }
    const currentKeyBan = await banOfCurrentKey(core, node.value)
    return { ...common, node, profile, domain, currentKeyBan, keyClaims, ...holders, ...brought }
  }
  return issue(core, parts, {
    async decide() {
      const facts = await read()
      return isRefusal(facts) ? facts : decide(core, parts, facts)
    },
    limit: async ({ before }) => parts.writeLimit.take(before.id),
    ...{ intend: intendRenewal, roots: call.issuerRoots, csr: call.csr, purpose: 'renewal' },
    record: async (renewal, signed, nextBearerHash) => recordRenewal(renewal, signed, nextBearerHash),
  })
}

type Registration = { readonly kind: 'registration'; readonly facts: RecoveryRegistrationFacts | null }

/** A key is proven for this node: unlike a machine that enrolls, one that renews knows its name. */
const registrationIn = (
  core: FlowCore,
  parts: RenewParts,
  { id }: NodePrincipal,
  { recovery, csr }: RenewCall,
): Registration | Refusal => {
  if (recovery === null) return { kind: 'registration', facts: null }
  const checked = checkRegistration(core.clock, parts, recovery, csr)
  if (isRefusal(checked)) return checked
  if (recovery.kind === 'key' && checked.node !== id) {
    return refuse('CHALLENGE_INVALID', 'it was not made for this node')
  }
  return checked
}

type Holders = Pick<RenewFacts, 'claimant' | 'claimantLive' | 'otherHolder' | 'lastSeen'>

/** Costs nothing where the only channels open are the caller's own. */
const holdersOf = async (
  secondHolders: SecondHolders,
  { id, source, credential }: NodePrincipal,
  evidence: AgentEvidence | null,
): Promise<Holders | Refusal> => {
  const instance = evidence === null ? null : evidence.instance
  const otherHolder = await secondHolders.other(id, instance)
  if (isRefusal(otherHolder)) return otherHolder
  return {
    claimant: callerFacts(evidence, source, credential.serial),
    claimantLive: instance !== null && (await secondHolders.isConnected(id, instance)),
    otherHolder,
    lastSeen: null,
  }
}

const banOfCurrentKey = async ({ store }: FlowCore, node: Node): Promise<RenewFacts['currentKeyBan']> => {
  const slots = slotsOf(node)
  return slots === null ? null : store.get('key-ban', slots.current.spki)
}

/** Settles a verdict that issues nothing, before its refusal is answered. */
const decide = async (
  core: FlowCore,
  parts: RenewParts,
  facts: RenewFacts,
): Promise<Renewal | Repeated | Refusal | 'lost-race' | 'decide-again'> => {
  const verdict = await decideNamingBoth(core, facts)
  switch (verdict.kind) {
    case 'refused':
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

/** Who was last seen is only named, and only where there are two holders: no other renewal has to read it. */
const decideNamingBoth = async ({ store }: FlowCore, facts: RenewFacts): Promise<RenewVerdict> => {
  const verdict = decideRenew(facts)
  const named = verdict.kind === 'duplicate' || (verdict.kind === 'admitted' && verdict.suspicion !== null)
  if (!named) return verdict
  const { value } = facts.node
  return decideRenew({ ...facts, lastSeen: lastSeenFacts(value, await store.observation(value.id)) })
}
