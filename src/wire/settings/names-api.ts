// The names of the plane, and the join string for machines that join by their hardware.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, oneOf, orNull } from '#wire/core/shapes.ts'

/** A DNS name, perhaps with a wildcard, or an IP address. */
export const ServedNameText = Type.String({ pattern: '^[0-9A-Za-z*_.:-]{1,253}$' })

const NameParams = Type.Object({ name: ServedNameText }, closed)

/** Who would be stranded without it, counted. */
const NeedsBody = Type.Object({
  /** Nodes that have not acknowledged the endpoint set without it. */
  nodes: Type.Integer(),
  /** Of those that have: nodes that join by their hardware, whose image may name it. */
  images: Type.Integer(),
  tokens: Type.Integer(),
  repair_bundles: Type.Integer(),
  /** Handed out without a token; nothing shows whether one is still in use. */
  join_strings: Type.Integer(),
})

export const PlaneNameView = Type.Object({
  name: Type.String(),
  /** `address`: a listener or a URL has it, and no certificate. */
  use: oneOf(['certificate', 'address']),
  /** `kept`: the configuration does not have it any more, and the certificates do. `dropped`: neither has it. */
  state: oneOf(['configured', 'kept', 'dropped']),
  since: Type.String(),
  dropped_at: orNull(Type.String()),
  dropped_by: orNull(Type.String()),
  /** Null unless it is kept. */
  needed_by: orNull(NeedsBody),
})
export type PlaneNameView = Static<typeof PlaneNameView>

const PlaneNamesAnswer = Type.Object({ names: Type.Array(PlaneNameView) })

const JoinStringAnswer = Type.Object({ join: Type.String() })

export const planeNamesApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/names',
    access: 'viewer',
    summary: 'The names that the plane has served, and who still needs those it is to give up',
    answer: PlaneNamesAnswer,
  }),
  drop: endpoint({
    method: 'POST',
    path: '/v1/names/:name/drop',
    access: 'platform-admin',
    summary: 'Drops a name that the configuration has no longer from the certificates of the plane',
    params: NameParams,
    body: EmptyRequest,
    answer: PlaneNameView,
  }),
  joinString: endpoint({
    method: 'POST',
    path: '/v1/join-string',
    access: 'operator',
    summary: 'A join string without a token, for machines that join by their hardware identity',
    body: EmptyRequest,
    answer: JoinStringAnswer,
  }),
}
