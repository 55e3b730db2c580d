// What a node asks in its own name. The challenge is the one call that both
// listeners for machines answer alike, to anyone.

import { refuse } from '#domain/core/refusal.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { answer, serve, type Route } from '#plane/http/route.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import { isoTime } from '#platform/clock.ts'
import { challengeApi, identityApi } from '#wire/identity/identity-api.ts'
import { confirmNode } from './confirm-node.ts'
import { identityAnswer, type AnswerParts } from './issue.ts'
import { renewCertificate, type RenewParts } from './renew-certificate.ts'
import { issueChallenge, type StatementParts } from './request-proofs.ts'

/**
 * A boot storm behind one NAT address asks for a few hundred a second; a caller that asks for more on a kept connection
 * takes the processor away from handshakes.
 */
export const challengeLimits = { perMinute: 120_000, perMinutePerSource: 30_000 }

/** `budget`: what challenges may cost: each is a signature that is made for a caller without a credential. Shared by both listeners. */
export const challengeRoutes = (
  core: Pick<Core, 'clock' | 'random'>,
  statements: StatementParts,
  budget: Pick<CallerBudget, 'charge' | 'retryAfterMs'>,
): readonly Route[] =>
  serve(challengeApi, {
    challenge: async (call) => {
      const { nonce, node_id: node = null } = call.body
      if (budget.charge(call.principal.source) === 'over')
        return { ...refuse('RATE_LIMITED', 'too many challenges'), retryAfterMs: budget.retryAfterMs() }
      return answer({ challenge: issueChallenge(core, statements, { nonce, node }) })
    },
  })

export const identityRoutes = (core: FlowCore, parts: RenewParts & AnswerParts): readonly Route[] =>
  serve(identityApi, {
    confirm: async (call) => {
      const { persisted = true, detail = null } = call.body
      const { principal, evidence, correlation } = call
      const confirmation = { persisted, detail }
      const outcome = await confirmNode(core, parts, principal, { confirmation, evidence, correlation })
      if (outcome.kind === 'refused') return outcome
      const { id, membership } = outcome.node
      return answer({ node_id: id, membership: membership.kind, server_time: isoTime(core.clock.nowMs()) })
    },
    renew: async (call) => {
      const { csr, counter = null, recovery = null, issuer_roots: issuerRoots = null } = call.body
      const { principal, evidence, correlation } = call
      if (issuerRoots !== null) core.store.observe(principal.id, { issuerRoots })
      const outcome = await renewCertificate(core, parts, principal, {
        ...{ csr, counter, recovery, issuerRoots },
        evidence,
        correlation,
      })
      return outcome.kind === 'refused' ? outcome : answer(identityAnswer(core.clock, parts, outcome))
    },
    // Reached only without `Upgrade: websocket`; the listener takes upgrades over before this.
    channel: async () => refuse('REQUEST_INVALID', 'this address is a WebSocket: send Upgrade: websocket'),
  })
