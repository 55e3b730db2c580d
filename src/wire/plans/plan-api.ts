// Plans between operators and the plane.

import { Type, type Static } from 'typebox'
import { revocationReasons } from '#domain/core/certificate.ts'
import { mostPlanned, mostSelected, planActions, type Plan } from '#domain/plans/plan.ts'
import { isoTime } from '#platform/clock.ts'
import { recordOf } from '#platform/json-schema.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import {
  closed,
  EmptyRequest,
  IdParams,
  NameText,
  NodeIdText,
  oneOf,
  orNull,
  Settings,
  text,
} from '#wire/core/shapes.ts'
import { KeyIdText } from '#wire/core/task-statements.ts'
import { mostAtOnce } from '#domain/tasks/rollout.ts'
import { ManyTasks } from '#wire/tasks/task-api.ts'
import { ServedNameText } from '#wire/settings/names-api.ts'
import { NodeChangeBody, NodeSelection } from './node-changes.ts'
import { ReceiptView } from '#wire/revocation/receipt-api.ts'

const Nodes = Type.Array(NodeIdText, { minItems: 1, maxItems: mostPlanned })
const Reason = text(256)
/** One of them. */
const onNodes = { nodes: Type.Optional(Nodes), select: Type.Optional(NodeSelection) }

const PlanActionBody = Type.Union([
  Type.Object(
    {
      kind: Type.Literal('revoke-nodes'),
      ...onNodes,
      reason: Reason,
      /** As at `POST /v1/nodes/{id}/revoke`. */
      reason_code: Type.Optional(oneOf(revocationReasons)),
    },
    closed,
  ),
  Type.Object({ kind: Type.Literal('decommission-nodes'), ...onNodes, force: Type.Optional(Type.Boolean()) }, closed),
  Type.Object({ kind: Type.Literal('purge-nodes'), ...onNodes, reason: Reason }, closed),
  Type.Object({ kind: Type.Literal('change-nodes'), select: NodeSelection, change: NodeChangeBody }, closed),
  Type.Object({ kind: Type.Literal('revoke-token'), token: IdParams.properties.id }, closed),
  Type.Object({ kind: Type.Literal('delete-vcluster'), vcluster: NameText }, closed),
  Type.Object({ kind: Type.Literal('change-profile'), profile: NameText, set: Settings }, closed),
  Type.Object(
    {
      kind: Type.Literal('rotate-ca'),
      /** The id of an authority whose key may be compromised. Left out: an ordinary rotation. */
      compromised: Type.Optional(Type.String({ pattern: '^[0-9a-f]{1,64}$' })),
      reason: Type.Optional(Reason),
    },
    closed,
  ),
  Type.Object({ kind: Type.Literal('drop-name'), name: ServedNameText }, closed),
  /** `now` at `POST /v1/task-signers/rotate`. */
  Type.Object({ kind: Type.Literal('rotate-signer') }, closed),
  Type.Object({ kind: Type.Literal('withdraw-signer'), key: KeyIdText, reason: Reason }, closed),
  /** A rollout, which has the id of the plan: `GET /v1/rollouts/{id}`. */
  Type.Object(
    {
      kind: Type.Literal('create-tasks'),
      ...onNodes,
      ...ManyTasks,
      /** How many tasks are open at once. Without it: 10. */
      concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: mostAtOnce })),
      /** After so many failures the rest is held. Without it: 1. */
      failure_limit: Type.Optional(Type.Integer({ minimum: 1, maximum: mostSelected })),
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
  /** Of `create-tasks`: what each node would carry out; null: the plan is for something else. A plane of 0.5 knows none. */
  task: Type.Optional(
    orNull(
      Type.Object({
        type: Type.String(),
        parameters: recordOf(Type.String(), Type.Unknown()),
        /** How long each may wait for its node. */
        expires_in_ms: Type.Integer(),
        /** How many are open at once. */
        concurrency: Type.Integer(),
        /** After so many failures the rest is held. */
        failure_limit: Type.Integer(),
      }),
    ),
  ),
  /** A line for each it concerns. */
  effects: Type.Array(
    Type.Object({
      subject: Type.String(),
      effect: Type.String(),
      /** When access is lost: `at once`, `at expiry`; null: it is not. */
      loses: orNull(Type.String()),
      /** It cannot recover without an operator: what the operator would have to do. */
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

/** `GET /v1/plans/{id}/progress`; null: the replica that answers is not applying it. */
const PlanProgress = Type.Object({ done: orNull(Type.Integer()), of: orNull(Type.Integer()) })

export const planView = ({ id, action, effects, by, computedAtMs, expiresAtMs, applied }: Plan): PlanView => ({
  id,
  action: action.kind,
  by,
  computed_at: isoTime(computedAtMs),
  expires_at: isoTime(expiresAtMs),
  applied_at: applied === null ? null : isoTime(applied.atMs),
  applied_by: applied === null ? null : applied.by,
  task: taskIn(action),
  effects: effects.map((line) => ({ ...line, facts: [...line.facts] })),
})

const taskIn = (action: Plan['action']): NonNullable<PlanView['task']> | null =>
  action.kind !== 'create-tasks'
    ? null
    : {
        ...{ type: action.type, parameters: { ...action.parameters }, expires_in_ms: action.lifeMs },
        ...{ concurrency: action.concurrency, failure_limit: action.failureLimit },
      }

export const planApi = {
  compute: endpoint({
    method: 'POST',
    path: '/v1/plans',
    access: 'operator',
    summary:
      'What an action would do: whom it concerns, who loses access when, what could not recover without an operator',
    body: PlanRequest,
    answer: PlanView,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/plans/:id',
    access: 'viewer',
    summary: 'Shows a plan',
    params: IdParams,
    answer: PlanView,
  }),
  progress: endpoint({
    method: 'GET',
    path: '/v1/plans/:id/progress',
    access: 'viewer',
    summary: 'How many steps of a plan are done while it is being applied, as the replica that applies it knows it',
    params: IdParams,
    answer: PlanProgress,
  }),
  apply: endpoint({
    method: 'POST',
    path: '/v1/plans/:id/apply',
    access: 'operator',
    summary: 'Applies a plan, once; refused with what changed, if anything has',
    params: IdParams,
    body: EmptyRequest,
    answer: PlanApplied,
  }),
}
