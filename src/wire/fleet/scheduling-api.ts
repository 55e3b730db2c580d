// What a scheduler watches: where work may be placed, and why not elsewhere.

import { Type, type Static } from 'typebox'
import { membershipKinds } from '#domain/core/node.ts'
import { closed, oneOf, orNull } from '#wire/core/shapes.ts'

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
    vcluster: Type.Optional(Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' })),
    after: Type.Optional(Type.String({ minLength: 1, maxLength: 8500 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    /** Wait up to so long for something new. */
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
