import type { Plan } from '#domain/plans/plan.ts'
import type { Applied, StepDone } from './apply-plan.ts'
import { isoTime } from '#platform/clock.ts'
import type { PlanApplied, PlanView } from '#wire/plans/plan-api.ts'
import { receiptView } from '#plane/revocation/receipt-view.ts'

export const planView = ({ id, action, effects, by, computedAtMs, expiresAtMs, applied }: Plan): PlanView => ({
  id,
  action: action.kind,
  by,
  computed_at: isoTime(computedAtMs),
  expires_at: isoTime(expiresAtMs),
  applied_at: applied === null ? null : isoTime(applied.atMs),
  applied_by: applied === null ? null : applied.by,
  effects: effects.map((line) => ({ ...line, facts: [...line.facts] })),
})

/** `replicas`: how many there are now. */
export const planAppliedView = ({ plan, steps }: Applied, replicas: number): PlanApplied => ({
  plan: planView(plan),
  steps: steps.map((step) => stepView(step, replicas)),
})

const stepView = ({ subject, outcome }: StepDone, replicas: number): PlanApplied['steps'][number] =>
  outcome.kind === 'refused'
    ? { subject, done: false, code: outcome.code, detail: outcome.detail, receipt: null }
    : {
        subject,
        done: true,
        code: null,
        detail: null,
        receipt: outcome.receipt === null ? null : receiptView(outcome.receipt, replicas, null),
      }
