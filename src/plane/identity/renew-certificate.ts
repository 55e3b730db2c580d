// A node that is in good standing gets its next certificate: read, decide, sign, commit, publish.

import { certificateKey } from '#domain/core/certificate.ts'
import type { Attribution } from '#domain/core/decision.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideRenew, type RenewFacts, type RenewVerdict } from '#domain/identity/renewal.ts'
import { renewed } from '#domain/identity/renewed.ts'
import { slotsOf } from '#domain/core/slots.ts'
import { sortableId, type Random } from '#platform/random.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { AgentEvidence } from '#wire/api/agent-evidence.ts'
import type { RecoveryRegistration } from '#wire/recovery/recovery-registration.ts'
import { nodeTries, retryLostRaces } from '#plane/core/commit-decision.ts'
import { checkRegistration } from './check-registration.ts'
import { commitIssued } from './commit-issued.ts'
import { claimantFacts, lastSeenFacts, liveHolderFacts } from './holder-facts.ts'
import type { ChallengeDeps } from './issue-challenge.ts'
import { raiseCopiedImage, readKeyClaims } from './key-claims.ts'
import { keyInRequest } from './key-in-request.ts'
import { nextBearerHash, type HandedOut, type LineageDeps } from './lineage.ts'
import { holderUnknown, type FindOtherHolder, type HasChannel } from './live-holder.ts'
import type { NodePace } from '#plane/limits/node-pace.ts'
import { raiseSecondHolder } from './raise-second-holder.ts'
import { settleDuplicate, type DuplicateDeps } from './settle-duplicate.ts'
import { readRenewalCounter } from './signed-counter.ts'
import { useCertificate, type InUse, type UseDeps } from '#plane/core/use-certificate.ts'

export type RenewDeps = UseDeps &
  ChallengeDeps &
  LineageDeps &
  DuplicateDeps & {
    readonly issuer: Issuer
    readonly random: Random
    readonly pace: NodePace
    readonly findOtherHolder: FindOtherHolder
    readonly hasChannel: HasChannel
  }

export type RenewCall = {
  readonly csr: string
  /** Null from agents that were never given one. */
  readonly counter: string | null
  /** By what it will recover; null: it does not say. */
  readonly recovery: RecoveryRegistration | null
  readonly evidence: AgentEvidence | null
  readonly correlation: string
}

export type Renewed = {
  readonly kind: 'renewed'
  readonly node: Node
  readonly profile: Profile
  readonly domain: DomainSettings
  readonly certificate: HandedOut & { readonly issuer: string; readonly der: string }
}

export const renewCertificate = async (
  deps: RenewDeps,
  principal: NodePrincipal,
  call: RenewCall,
): Promise<Renewed | Refusal> => {
  const by = { actor: actorOf(principal), source: principal.source, correlation: call.correlation }
  const outcome = await attemptRenewal(deps, principal, call, by)
  if (outcome.kind !== 'refused') return outcome
  if (outcome.code === 'LINEAGE_CONFLICT' || outcome.code === 'SERIAL_MISMATCH') {
    await raiseSecondHolder(deps, {
      node: principal.id,
      condition: 'duplicate_identity',
      reason: 'two holders of one certificate asked for its successor',
      evidence: { source: principal.source, serial: principal.proof.serial, code: outcome.code },
      by,
    })
  }
  return outcome
}

const attemptRenewal = async (
  deps: RenewDeps,
  principal: NodePrincipal,
  call: RenewCall,
  by: Attribution,
): Promise<Renewed | Refusal> => {
  const counter = readRenewalCounter(deps, call.counter, principal.id)
  if (isRefusal(counter)) return counter
  const registration = registrationIn(deps, principal, call)
  if (isRefusal(registration)) return registration
  const key = keyInRequest(call.csr)
  return retryLostRaces(nodeTries, async () => {
    // Asked before the node is read: what is decided on has to be at least as new.
    const holders = await holdersOf(deps, principal, call.evidence)
    if (isRefusal(holders)) return holders
    const keyClaims = await readKeyClaims(deps.store, key, registration.facts)
    const standing = await useCertificate(deps, principal, call.correlation)
    if (standing.kind === 'refused') return standing
    const facts: RenewFacts = {
      ...(await factsOf(deps, standing, key)),
      keyClaims,
      ...holders,
      counter,
      register: registration.facts,
      principal,
      by,
    }
    return carryOut(deps, facts, await decide(deps, facts))
  })
}

type Registration = { readonly kind: 'registration'; readonly facts: RecoveryRegistrationFacts | null }

/** A key is proven for this node: unlike a machine that enrols, whoever renews knows its name. */
const registrationIn = (
  deps: RenewDeps,
  { id }: NodePrincipal,
  { recovery, csr }: RenewCall,
): Registration | Refusal => {
  if (recovery === null) return { kind: 'registration', facts: null }
  const checked = checkRegistration(deps, recovery, csr)
  if (isRefusal(checked)) return checked
  if (recovery.kind === 'key' && checked.node !== id) {
    return refuse('CHALLENGE_INVALID', 'it was not made for this node')
  }
  return checked
}

type Holders = Pick<RenewFacts, 'claimant' | 'claimantLive' | 'otherHolder' | 'lastSeen'>

/** Costs nothing where the only channels open are of whoever asks. */
const holdersOf = async (
  deps: RenewDeps,
  { id, source, proof }: NodePrincipal,
  evidence: AgentEvidence | null,
): Promise<Holders | Refusal> => {
  const instance = evidence === null ? null : evidence.instance
  const live = await deps.findOtherHolder(id, instance)
  if (live === 'unknown') return holderUnknown(id)
  return {
    claimant: claimantFacts(evidence, source, proof.serial),
    claimantLive: instance !== null && (await deps.hasChannel(id, instance)),
    otherHolder: live === null ? null : liveHolderFacts(live),
    lastSeen: null,
  }
}

const factsOf = async (
  { store, issuer, clock, random }: RenewDeps,
  { node, profile, domain }: InUse,
  key: RenewFacts['key'],
): Promise<
  Pick<
    RenewFacts,
    'node' | 'profile' | 'domain' | 'key' | 'keyBan' | 'currentKeyBan' | 'withdrawn' | 'orderId' | 'nowMs'
  >
> => ({
  node,
  profile,
  domain,
  key,
  keyBan: key.kind === 'key' ? await store.get('key-ban', key.spkiHash) : null,
  currentKeyBan: await currentKeyBan(store, node.value),
  withdrawn: issuer.withdrawnIssuers(),
  orderId: sortableId(clock.nowMs(), random),
  nowMs: clock.nowMs(),
})

const currentKeyBan = async (store: RenewDeps['store'], node: Node): Promise<RenewFacts['currentKeyBan']> => {
  const slots = slotsOf(node)
  return slots === null ? null : store.get('key-ban', slots.current.spki)
}

/** Who was last seen is only named, and only where there are two: nobody else's renewal has to read it. */
const decide = async ({ store }: RenewDeps, facts: RenewFacts): Promise<RenewVerdict> => {
  const verdict = decideRenew(facts)
  const named = verdict.kind === 'duplicate' || (verdict.kind === 'admitted' && verdict.suspicion !== null)
  if (!named) return verdict
  const { value } = facts.node
  return decideRenew({ ...facts, lastSeen: lastSeenFacts(value, await store.observation(value.id)) })
}

const carryOut = async (
  deps: RenewDeps,
  facts: RenewFacts,
  verdict: RenewVerdict,
): Promise<Renewed | Refusal | 'lost-race' | 'decide-again'> => {
  switch (verdict.kind) {
    case 'refused':
      if (verdict.code === 'KEY_IN_USE') {
        await raiseCopiedImage(deps, facts.node.value.id, facts.keyClaims, facts.by.source)
      }
      return verdict
    case 'repeat': {
      const stored = await deps.store.get('certificate', certificateKey(verdict.slot.issuer, verdict.slot.serial))
      if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
      return renewedAs(facts, facts.node.value, stored.value)
    }
    case 'duplicate':
      return settleDuplicate(deps, facts.node.value.id, verdict.verdict)
    case 'admitted': {
      const wait = deps.pace.hurry(facts.node.value.id)
      if (wait !== null) return wait
      const issued = await deps.issuer.sign(verdict.order)
      const { change, node } = renewed(verdict, issued, nextBearerHash(deps, facts.node.value, issued.spki))
      const outcome = await commitIssued(deps, issued, change)
      if (outcome === 'lost-race') return outcome
      return renewedAs(facts, node, issued)
    }
  }
}

const renewedAs = (
  { profile, domain }: Pick<RenewFacts, 'profile' | 'domain'>,
  node: Node,
  certificate: Renewed['certificate'],
): Renewed => ({ kind: 'renewed', node, profile: profile.value, domain: domain.value, certificate })
