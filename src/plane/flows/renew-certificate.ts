// A node that is in good standing gets its next certificate: read, decide, sign, commit, publish.

import { certificateKey } from '#domain/certificate.ts'
import { actorOf, type NodePrincipal } from '#domain/principal.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import { decideRenew } from '#domain/renewal.ts'
import { renewed } from '#domain/renewed.ts'
import type { Profile } from '#domain/profile.ts'
import { sortableId, type Random } from '#platform/random.ts'
import type { Issuer } from '#plane/issuer/issuer.ts'
import { keyInRequest } from './key-in-request.ts'
import type { NodePace } from './node-pace.ts'
import { raiseSecondHolder } from './raise-second-holder.ts'
import { useCertificate, type UseDeps } from './use-certificate.ts'

export type RenewDeps = UseDeps & { readonly issuer: Issuer; readonly random: Random; readonly pace: NodePace }

export type Renewed = {
  readonly kind: 'renewed'
  readonly profile: Profile
  readonly certificate: { readonly issuer: string; readonly der: string }
}

const mostTries = 16

export const renewCertificate = async (
  deps: RenewDeps,
  principal: NodePrincipal,
  csr: string,
  correlation: string,
): Promise<Renewed | Refusal> => {
  const outcome = await attemptRenewal(deps, principal, csr, correlation)
  if (outcome.kind !== 'refused') return outcome
  if (outcome.code === 'LINEAGE_CONFLICT' || outcome.code === 'SERIAL_MISMATCH') {
    await raiseSecondHolder(deps, {
      node: principal.id,
      condition: 'duplicate_identity',
      reason: 'two holders of one certificate asked for its successor',
      evidence: { source: principal.source, serial: principal.proof.serial, code: outcome.code },
      by: { actor: actorOf(principal), source: principal.source, correlation },
    })
  }
  return outcome
}

const attemptRenewal = async (
  deps: RenewDeps,
  principal: NodePrincipal,
  csr: string,
  correlation: string,
): Promise<Renewed | Refusal> => {
  const key = keyInRequest(csr)
  for (let attempt = 0; attempt < mostTries; attempt++) {
    const standing = await useCertificate(deps, principal, correlation)
    if (standing.kind === 'refused') return standing
    const verdict = decideRenew({
      node: standing.node,
      profile: standing.profile,
      domain: standing.domain,
      principal,
      key,
      keyBan: key.kind === 'key' ? await deps.store.get('key-ban', key.spkiHash) : null,
      counter: null,
      claimant: null,
      claimantLive: false,
      otherHolder: null,
      lastSeen: null,
      orderId: sortableId(deps.clock.nowMs(), deps.random),
      by: { actor: actorOf(principal), source: principal.source, correlation },
      nowMs: deps.clock.nowMs(),
    })
    if (verdict.kind === 'refused') return verdict
    if (verdict.kind === 'duplicate') return verdict.verdict.refusal
    const profile = standing.profile.value
    if (verdict.kind === 'repeat') {
      const stored = await deps.store.get('certificate', certificateKey(verdict.slot.issuer, verdict.slot.serial))
      if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
      return { kind: 'renewed', profile, certificate: stored.value }
    }
    const wait = deps.pace.hurry(principal.id)
    if (wait !== null) return wait
    const issued = await deps.issuer.sign(verdict.order)
    const outcome = await deps.store.commit(renewed(verdict, issued, null).change)
    if (outcome === 'lost-race') continue
    deps.feed.publish(outcome)
    return { kind: 'renewed', profile, certificate: issued }
  }
  return { ...refuse('BUSY', 'many changes to the same node at once'), retryAfterMs: 1000 }
}
