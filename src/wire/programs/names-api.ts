// The names that operators register for nodes, and the leaves of programs, as they are shown.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, deprecated, NodeIdText, NodeParams, orNull, text } from '#wire/core/shapes.ts'
import { ProgramLists } from './programs-api.ts'

/** `POST /v1/nodes/{id}/names/add` and `.../remove`: DNS names and addresses. */
export const NamesRequest = Type.Object({ names: Type.Array(text(255), { minItems: 1, maxItems: 32 }) }, closed)

export const NodeNames = Type.Object({
  node: Type.String(),
  names: Type.Array(
    Type.Object({
      /** A DNS name or an address. */
      name: Type.String(),
      /** Made from a registered name by a template of an output. */
      derived: Type.Boolean(),
      since: Type.String(),
      by: Type.String(),
    }),
  ),
})
export type NodeNames = Static<typeof NodeNames>

const LeafView = Type.Object({
  /** The authority, by its key. */
  issuer: Type.String(),
  /** `built-in`, or the name of an outside issuer. Left out by planes before 0.7. */
  issuer_name: Type.Optional(Type.String()),
  serial: Type.String(),
  fingerprint: Type.String(),
  sha256: Type.Optional(deprecated(Type.String(), { use: 'fingerprint' })),
  issued_at: Type.String(),
  not_after: Type.String(),
  /** DNS names and addresses. */
  names: Type.Array(Type.String()),
})

export const ProgramView = Type.Object({
  node: Type.String(),
  epoch: Type.Integer(),
  output: Type.String(),
  /** As the leaf carries it. */
  uri: Type.String(),
  current: orNull(LeafView),
  /** The one before, as long as it is good. */
  former: orNull(LeafView),
  ended: orNull(Type.Object({ at: Type.String(), why: Type.String() })),
})
export type ProgramView = Static<typeof ProgramView>

/** `after`: what an answer gave as `next`. */
const ProgramListQuery = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    after: Type.Optional(text(200)),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500 })),
  },
  closed,
)
export const ProgramListAnswer = Type.Object({ programs: Type.Array(ProgramView), next: orNull(Type.String()) })

export const nodeNamesApi = {
  names: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id/names',
    access: 'viewer',
    summary: 'The names that the programs of a node may carry',
    params: NodeParams,
    answer: NodeNames,
  }),
  addNames: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/names/add',
    access: 'operator',
    summary: 'Registers DNS names and addresses for the programs of a node',
    params: NodeParams,
    body: NamesRequest,
    answer: NodeNames,
    example: { request: { names: ['db-1.example', '10.0.0.7'] } },
  }),
  removeNames: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/names/remove',
    access: 'operator',
    summary: 'Takes names from a node, and denies the leaves of its programs that carry one',
    params: NodeParams,
    body: NamesRequest,
    answer: NodeNames,
    example: { request: { names: ['db-1.example'] } },
  }),
  programs: endpoint({
    method: 'GET',
    path: '/v1/programs',
    access: 'viewer',
    summary: 'The leaves of programs, of all nodes or of one',
    query: ProgramListQuery,
    answer: ProgramListAnswer,
  }),
  programLists: endpoint({
    method: 'GET',
    path: '/v1/program-lists',
    access: 'viewer',
    summary: 'The revocation lists of every authority above the leaves of programs, for those who are no node',
    answer: ProgramLists,
  }),
}
