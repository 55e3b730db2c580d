// What health checkers tell the plane.

import { Type, type Static } from 'typebox'
import { closed } from '#wire/core/shapes.ts'

/** `POST /v1/nodes/{id}/health`. `reason` is asked for where the state is `unhealthy`. */
export const HealthRequest = Type.Object(
  {
    state: Type.Enum(['unhealthy', 'healthy']),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    /** Bounded facts that support it. */
    evidence: Type.Optional(
      Type.Record(
        Type.String({ pattern: '^[A-Za-z0-9_.-]{1,40}$' }),
        Type.Union([Type.String({ maxLength: 128 }), Type.Number(), Type.Null()]),
        { maxProperties: 8 },
      ),
    ),
  },
  closed,
)
export type HealthRequest = Static<typeof HealthRequest>
