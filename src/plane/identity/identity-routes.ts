// What a node asks in its own name. The challenge is the one call that both
// listeners for machines answer alike, to anyone.

import { refuse } from '#domain/core/refusal.ts'
import { answer, serve, type Route } from '#plane/http/route.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import { isoTime } from '#platform/clock.ts'
import { challengeApi, identityApi } from '#wire/identity/identity-api.ts'
import { confirmNode } from './confirm-node.ts'
import { identityAnswer, type IdentityAnswerDeps } from './issue.ts'
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

export type IdentityRouteDeps = RenewDeps & Pick<IdentityAnswerDeps, 'urls'>

export const identityRoutes = (deps: IdentityRouteDeps): readonly Route[] =>
  serve(identityApi, {
    confirm: async (call) => {
      const { persisted = true, detail = null } = call.body
      const { principal, evidence, correlation } = call
      const confirmation = { persisted, detail }
      const outcome = await confirmNode(deps, principal, { confirmation, evidence, correlation })
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
