// The one call both doors for machines answer alike, to anyone: what time it is, signed, and something to prove a key on.

import { refuse } from '#domain/core/refusal.ts'
import { issueChallenge, type ChallengeDeps } from './issue-challenge.ts'
import type { StrangersBudget } from '#plane/limits/strangers-budget.ts'
import { challengeApi } from '#wire/identity/identity-api.ts'
import { answer, serve, type Route } from '#plane/http/route.ts'

export type ChallengeRouteDeps = ChallengeDeps & {
  /** What challenges may cost: each is a signature that is made without any proof. Shared by both listeners. */
  readonly challenges: Pick<StrangersBudget, 'charge' | 'retryAfterMs'>
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
