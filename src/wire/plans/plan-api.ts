// Plans between operators and the plane.

import { Type, type Static } from 'typebox'
import { mostPlanned, planActions } from '#domain/plans/plan.ts'
import { NodeIdText } from '#wire/api/node-api.ts'
import { SetRequest } from '#wire/api/operator-api.ts'
import { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { closed, orNull } from '#wire/core/shapes.ts'

const Nodes = Type.Array(NodeIdText, { minItems: 1, maxItems: mostPlanned })
const Reason = Type.String({ minLength: 1, maxLength: 256 })
const Id = Type.String({ pattern: '^[0-9A-Za-z_-]{1,64}$' })
const Name = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' })

const PlanActionBody = Type.Union([
  Type.Object({ kind: Type.Literal('revoke-nodes'), nodes: Nodes, reason: Reason }, closed),
  Type.Object({ kind: Type.Literal('decommission-nodes'), nodes: Nodes, force: Type.Optional(Type.Boolean()) }, closed),
  Type.Object({ kind: Type.Literal('revoke-token'), token: Id }, closed),
  Type.Object({ kind: Type.Literal('delete-vcluster'), vcluster: Name }, closed),
  Type.Object({ kind: Type.Literal('change-profile'), profile: Name, set: SetRequest.properties.set }, closed),
  Type.Object(
    {
      kind: Type.Literal('rotate-ca'),
      /** The id of an authority whose key somebody else may have. Left out: an ordinary rotation. */
      compromised: Type.Optional(Type.String({ pattern: '^[0-9a-f]{1,64}$' })),
      reason: Type.Optional(Reason),
    },
    closed,
  ),
])
export type PlanActionBody = Static<typeof PlanActionBody>

/** `POST /v1/plans` */
export const PlanRequest = Type.Object({ action: PlanActionBody }, closed)
export type PlanRequest = Static<typeof PlanRequest>

export const PlanView = Type.Object({
  id: Type.String(),
  action: Type.Enum([...planActions]),
  by: Type.String(),
  computed_at: Type.String(),
  expires_at: Type.String(),
  applied_at: orNull(Type.String()),
  applied_by: orNull(Type.String()),
  /** A line for each it concerns. */
  effects: Type.Array(
    Type.Object({
      subject: Type.String(),
      effect: Type.String(),
      /** When access is lost: `at once`, `at expiry`; null: it is not. */
      loses: orNull(Type.String()),
      /** It cannot come back by itself: what a person would have to do. */
      unrecoverable: orNull(Type.String()),
      facts: Type.Array(Type.String()),
    }),
  ),
})
export type PlanView = Static<typeof PlanView>

/** `POST /v1/plans/{id}/apply` */
export const PlanApplied = Type.Object({
  plan: PlanView,
  steps: Type.Array(
    Type.Object({
      subject: Type.String(),
      done: Type.Boolean(),
      /** Why not: a refusal's code, and what was wrong. */
      code: orNull(Type.String()),
      detail: orNull(Type.String()),
      receipt: orNull(ReceiptView),
    }),
  ),
})
export type PlanApplied = Static<typeof PlanApplied>
