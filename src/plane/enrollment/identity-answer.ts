// What a machine is told with a certificate, whichever way it got it.

import { agentProfile, endpointSet, withdrawnPart, type PlaneUrls } from '#plane/core/configuration.ts'
import type { PeerBook } from '#plane/network/peer-book.ts'
import { overlayConfigOf, wireguardConfigOf } from '#plane/network/wireguard-config.ts'
import type { Enrolled } from './enroll-node.ts'
import { lineageOf, type LineageDeps } from '#plane/identity/lineage.ts'
import type { Renewed } from '#plane/identity/renew-certificate.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { understoodFields, type EnrollResponse, type RenewResponse } from '#wire/api/node-api.ts'
import { pemChain } from './pem-chain.ts'

export type IdentityAnswerDeps = LineageDeps & {
  readonly issuer: Issuer
  readonly clock: Clock
  readonly urls: () => PlaneUrls
  readonly peerBook: Pick<PeerBook, 'peersFor'>
}

export const renewalAnswer = (
  deps: IdentityAnswerDeps,
  { node, profile, domain, certificate }: Renewed | Enrolled,
): RenewResponse => {
  const { counter, recoveryToken } = lineageOf(deps, node, certificate)
  return {
    certificate_chain: pemChain(deps.issuer, certificate),
    roots: [...deps.issuer.roots()],
    ...withdrawnPart(deps.issuer),
    profile: agentProfile(profile),
    endpoints: endpointSet(deps.urls()),
    server_time: isoTime(deps.clock.nowMs()),
    understands: [...understoodFields],
    counter,
    recovery_trust: { roots: [...deps.recovery.roots()], statement_keys: [...deps.recovery.statementKeys()] },
    ...(recoveryToken !== null && { recovery_token: recoveryToken }),
    recovery_registered: node.recovery !== null,
    clock_tolerance_ms: domain.clockToleranceMs,
  }
}

/** For whoever starts a new epoch: all of it. */
export const enrollmentAnswer = (deps: IdentityAnswerDeps, outcome: Enrolled): EnrollResponse => {
  const { node, profile, domain } = outcome
  const wireguard = wireguardConfigOf(node, profile, domain)
  return {
    node_id: node.id,
    domain: domain.name,
    epoch: node.epoch,
    vcluster: node.assignment,
    liveness_grace_ms: domain.livenessGraceMs,
    overlay_config: wireguard === null ? null : overlayConfigOf(wireguard, deps.peerBook.peersFor(node)),
    ...renewalAnswer(deps, outcome),
    understands: [...understoodFields],
  }
}
