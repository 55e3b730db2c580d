// What a machine may ask that has lost its identity, or rehearses how it would get it back. Each call brings its own credential.

import { refuseField } from '#domain/core/refusal.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { recoverNode, type RecoverParts } from './recover-node.ts'
import { rehearseRecovery, type RehearseParts } from './rehearse-recovery.ts'
import { recoveryApi } from '#wire/recovery/recovery-api.ts'
import { challengeRoutes } from '#plane/identity/identity-routes.ts'
import { enrollmentAnswer, type EnrollmentAnswerParts } from '#plane/enrollment/enroll-routes.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import { answer, serve, type CallOf, type Route } from '#plane/http/route.ts'

export type RecoveryRouteParts = RecoverParts &
  RehearseParts &
  EnrollmentAnswerParts & { readonly challenges: Pick<CallerBudget, 'charge' | 'retryAfterMs'> }

export const recoveryRoutes = (core: FlowCore, parts: RecoveryRouteParts): readonly Route[] => [
  ...challengeRoutes(core, parts, parts.challenges),
  ...serve(recoveryApi, {
    recover: (call) => recover(core, parts, call),
    rehearse: async (call) => {
      const { body } = call
      const outcome = await rehearseRecovery(core, parts, {
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

const noTime = (field: string) =>
  refuseField('REQUEST_INVALID', `failure.${field}`, 'body/failure has a time that is none')

const recover = async (core: FlowCore, parts: RecoveryRouteParts, call: CallOf<typeof recoveryApi.recover>) => {
  const { body } = call
  const { since, cert_not_after: notAfter } = body.failure
  const sinceMs = parseIsoTime(since)
  const certNotAfterMs = notAfter === null ? null : parseIsoTime(notAfter)
  if (sinceMs === null) return noTime('since')
  if (notAfter !== null && certNotAfterMs === null) return noTime('cert_not_after')
  const outcome = await recoverNode(core, parts, {
    node: body.node_id,
    credential: body.credential,
    counter: body.counter ?? null,
    csr: body.csr,
    failure: { class: body.failure.class, code: body.failure.code, sinceMs, certNotAfterMs },
    evidence: body.evidence,
    register: body.register ?? null,
    sighting: body.sighting ?? null,
    issuerRoots: body.issuer_roots ?? null,
    source: call.principal.source,
    correlation: body.correlation,
  })
  return outcome.kind === 'refused' ? outcome : answer(enrollmentAnswer(core.clock, parts, outcome))
}
