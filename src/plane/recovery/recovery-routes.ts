// What a machine may ask that has lost its identity, or rehearses how it would get it back. Each call brings its own proof.

import { refuse } from '#domain/core/refusal.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { recoverNode, type RecoverDeps } from './recover-node.ts'
import { rehearseRecovery, type RehearseDeps } from './rehearse-recovery.ts'
import { recoveryApi } from '#wire/recovery/recovery-api.ts'
import { challengeRoutes, type ChallengeRouteDeps } from '#plane/identity/identity-routes.ts'
import { enrollmentAnswer, type EnrollmentAnswerDeps } from '#plane/enrollment/enroll-routes.ts'
import { answer, serve, type CallOf, type Route } from '#plane/http/route.ts'

export type RecoveryRouteDeps = RecoverDeps &
  RehearseDeps &
  Pick<EnrollmentAnswerDeps, 'peerBook' | 'urls'> &
  Pick<ChallengeRouteDeps, 'challenges'>

export const recoveryRoutes = (deps: RecoveryRouteDeps): readonly Route[] => [
  ...challengeRoutes(deps),
  ...serve(recoveryApi, {
    recover: (call) => recover(deps, call),
    rehearse: async (call) => {
      const { body } = call
      const outcome = await rehearseRecovery(deps, {
        node: body.node_id,
        credential: body.credential,
        counter: body.counter,
        evidence: body.evidence,
        diskReserve: body.disk_reserve,
        clockSkewMs: body.clock_skew_ms,
        source: call.principal.source,
        correlation: call.correlation,
      })
      if (outcome.kind === 'refused') return outcome
      return answer({ outcome: outcome.outcome, step: outcome.step, why: outcome.why })
    },
  }),
]

const recover = async (deps: RecoveryRouteDeps, call: CallOf<typeof recoveryApi.recover>) => {
  const { body } = call
  const { since, cert_not_after: notAfter } = body.failure
  const sinceMs = parseIsoTime(since)
  const certNotAfterMs = notAfter === null ? null : parseIsoTime(notAfter)
  if (sinceMs === null || (notAfter !== null && certNotAfterMs === null))
    return refuse('REQUEST_INVALID', 'body/failure has a time that is none')
  const outcome = await recoverNode(deps, {
    node: body.node_id,
    credential: body.credential,
    counter: body.counter ?? null,
    csr: body.csr,
    failure: { class: body.failure.class, code: body.failure.code, sinceMs, certNotAfterMs },
    evidence: body.evidence,
    register: body.register ?? null,
    sighting: body.sighting ?? null,
    source: call.principal.source,
    correlation: body.correlation,
  })
  return outcome.kind === 'refused' ? outcome : answer(enrollmentAnswer(deps, outcome))
}
