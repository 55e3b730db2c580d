// For schedulers: where work may be placed, and why not elsewhere. For health checkers: their reports.

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import type { HardwareProfile } from '#domain/core/hardware-profile.ts'
import { membershipKinds, type Node } from '#domain/core/node.ts'
import { schedulingOf } from '#domain/fleet/scheduling.ts'
import { skuOf } from '#domain/fleet/hardware-rules.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NameText, NodeParams, oneOf, orNull } from '#wire/core/shapes.ts'
import { NodeDetail } from '#wire/node/node-api.ts'

export const SchedulingView = Type.Object({
  node: Type.String(),
  membership: oneOf(membershipKinds),
  vcluster: orNull(Type.String()),
  state: oneOf(['schedulable', 'draining', 'drained', 'unavailable']),
  /** Empty only when schedulable. */
  reasons: Type.Array(Type.String()),
  drain: oneOf(['none', 'draining', 'drained']),
  allocations: Type.Integer(),
  /** What the machine can be sold as, derived now; null: nothing yet, see `muster node machine`. */
  sku: orNull(Type.String()),
})
export type SchedulingView = Static<typeof SchedulingView>

/**
 * `GET /v1/scheduling`. Without `after`: all nodes, page by page, then what changes. `after` is always the `next` of the
 * answer before; it is good on every replica.
 */
export const SchedulingQuery = Type.Object(
  {
    vcluster: Type.Optional(NameText),
    after: Type.Optional(Type.String({ minLength: 1, maxLength: 8500 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    /** How long to wait for a change. */
    wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 30_000 })),
  },
  closed,
)
export type SchedulingQuery = Static<typeof SchedulingQuery>

/** A node whose `vcluster` is another than the one that is watched has left it. */
export const SchedulingAnswer = Type.Object({
  nodes: Type.Array(SchedulingView),
  next: Type.String(),
  /** There is more to read at once. */
  more: Type.Boolean(),
})

/** `POST /v1/nodes/{id}/health`. `reason` is asked for where the state is `unhealthy`. */
export const HealthRequest = Type.Object(
  {
    state: Type.Enum(['unhealthy', 'healthy']),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    /** Bounded facts that support it. */
    evidence: Type.Optional(
      recordOf(
        Type.String({ pattern: '^[A-Za-z0-9_.-]{1,40}$' }),
        Type.Union([Type.String({ maxLength: 128 }), Type.Number(), Type.Null()]),
        { maxProperties: 8 },
      ),
    ),
  },
  closed,
)
export type HealthRequest = Static<typeof HealthRequest>

export const schedulingView = (node: Node, profiles: readonly HardwareProfile[]): SchedulingView => {
  const { state, reasons } = schedulingOf(node)
  return {
    node: node.id,
    membership: node.membership.kind,
    vcluster: node.assignment,
    state,
    reasons: [...reasons],
    drain: node.drain,
    allocations: node.allocations,
    sku: skuOf(node.machine, profiles).sku,
  }
}

export const schedulingApi = {
  watch: endpoint({
    method: 'GET',
    path: '/v1/scheduling',
    access: 'viewer',
    summary:
      'Where work may be placed: all nodes first, then, from the cursor given, what changes; with wait_ms, waits',
    query: SchedulingQuery,
    answer: SchedulingAnswer,
  }),
  reportHealth: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/health',
    access: 'operator',
    summary: 'What a health checker has found: an unhealthy node gets no new work until it is healthy; safe to repeat',
    params: NodeParams,
    body: HealthRequest,
    answer: NodeDetail,
  }),
}
