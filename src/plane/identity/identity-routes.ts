// What a node asks in its own name, and what it is answered with a certificate. The challenge is the one call that both
// listeners for machines answer alike, to anyone.

import { refuse } from '#domain/core/refusal.ts'
import { toPem } from '#pki/pem.ts'
import { agentProfile, endpointSet, withdrawnPart, type PlaneUrls } from '#plane/core/configuration.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { answer, serve, type Route } from '#plane/http/route.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { understoodFields } from '#wire/enrollment/enroll-api.ts'
import { challengeApi, identityApi, type RenewResponse } from '#wire/identity/identity-api.ts'
import { confirmNode } from './confirm-node.ts'
import { counterAndToken, type CounterAndTokenDeps, type HandedOut, type Issued } from './issue.ts'
import { renewCertificate, type RenewDeps } from './renew-certificate.ts'
import { issueChallenge, type ChallengeDeps } from './request-proofs.ts'

export type ChallengeRouteDeps = ChallengeDeps & {
  /** What challenges may cost: each is a signature that is made without any proof. Shared by both listeners. */
  readonly challenges: Pick<CallerBudget, 'charge' | 'retryAfterMs'>
}

/**
 * A boot storm behind one NAT address asks for a few hundred a second; a caller that asks for more on a kept connection
 * takes the processor away from handshakes.
 */
export const challengeLimits = { perMinute: 120_000, perMinutePerSource: 30_000 }

export const challengeRoutes = (deps: ChallengeRouteDeps): readonly Route[] =>
  serve(challengeApi, {
    challenge: async (call) => {
      const { nonce, node_id: node = null } = call.body
      if (deps.challenges.charge(call.principal.source) === 'over')
        return { ...refuse('RATE_LIMITED', 'too many challenges'), retryAfterMs: deps.challenges.retryAfterMs() }
      return answer({ challenge: issueChallenge(deps, { nonce, node }) })
    },
  })

export type IdentityRouteDeps = RenewDeps & IdentityAnswerDeps

export const identityRoutes = (deps: IdentityRouteDeps): readonly Route[] =>
  serve(identityApi, {
    confirm: async (call) => {
      const { persisted = true, detail = null } = call.body
      const { principal, evidence, correlation } = call
      const confirmation = { persisted, detail }
      const outcome = await confirmNode(deps, deps, principal, { confirmation, evidence, correlation })
      if (outcome.kind === 'refused') return outcome
      const { id, membership } = outcome.node
      return answer({ node_id: id, membership: membership.kind, server_time: isoTime(deps.clock.nowMs()) })
    },
    renew: async (call) => {
      const { csr, counter = null, recovery = null } = call.body
      const { principal, evidence, correlation } = call
      const outcome = await renewCertificate(deps, principal, { csr, counter, recovery, evidence, correlation })
      return outcome.kind === 'refused' ? outcome : answer(identityAnswer(deps, outcome))
    },
    // Reached only without `Upgrade: websocket`; the listener takes upgrades over before this.
    channel: async () => refuse('REQUEST_INVALID', 'this address is a WebSocket: send Upgrade: websocket'),
  })

export type IdentityAnswerDeps = CounterAndTokenDeps & {
  readonly issuer: Pick<Issuer, 'chainOf' | 'roots' | 'withdrawnIssuers'>
  readonly recovery: Pick<RecoveryAuthority, 'roots' | 'statementKeys'>
  readonly clock: Clock
  readonly urls: () => PlaneUrls
}

/** What a machine is given with every certificate, whichever way it got it. */
export const identityAnswer = (
  deps: IdentityAnswerDeps,
  { node, profile, domain, certificate }: Issued,
): RenewResponse => {
  const { counter, recoveryToken } = counterAndToken(deps, node, certificate)
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

/** The leaf, then its issuers, without the root. */
const pemChain = (issuer: Pick<Issuer, 'chainOf'>, { issuer: signedBy, der }: HandedOut): string =>
  [Buffer.from(der, 'base64'), ...issuer.chainOf(signedBy)].map((part) => toPem('CERTIFICATE', part)).join('')
