// Counts the answers to verifiers of our certificates.

import { Counter, type Registry } from 'prom-client'
import type { OcspOutcome } from '#plane/ca/answer-ocsp.ts'
import type { ListKind } from '#plane/ca/revocation-lists.ts'
import { counted } from './count-commits.ts'

export type StatusMeasures = {
  /** Once for every certificate asked about, or for a question that got no answer. */
  answered(outcome: OcspOutcome): void
  /** A revocation list was made and signed. */
  listMade(kind: ListKind): void
  /** A call at the status listener was turned away: too many of them. */
  overLimit(): void
}

const outcomes: readonly OcspOutcome[] = [
  'good',
  'revoked',
  'unknown',
  'malformedRequest',
  'internalError',
  'tryLater',
  'unauthorized',
]
const kinds: readonly ListKind[] = ['full', 'delta']

export const measureStatus = (registers: Registry[]): StatusMeasures => {
  const answered = new Counter({
    name: 'muster_ocsp_answers_total',
    help: 'Certificates asked about by OCSP, by what was answered',
    labelNames: ['outcome'] as const,
    registers,
  })
  const made = new Counter({
    name: 'muster_crl_made_total',
    help: 'Certificate revocation lists made and signed',
    labelNames: ['kind'] as const,
    registers,
  })
  const overLimit = new Counter({
    name: 'muster_status_requests_over_limit_total',
    help: 'Requests at the status listener turned away because there were too many',
    registers,
  })
  for (const outcome of outcomes) counted(answered, { outcome })
  for (const kind of kinds) counted(made, { kind })
  return {
    answered: (outcome) => answered.inc({ outcome }),
    listMade: (kind) => made.inc({ kind }),
    overLimit: () => overLimit.inc(),
  }
}
