// Enrollment tokens, between operators and the plane. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import { type Token, tokenStatus } from '#domain/core/token.ts'
import { isoTime } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { ErrorBody } from '#wire/core/error-body.ts'
import { closed, EmptyRequest, IdParams, NodeIdText, oneOf, orNull, TagText, text } from '#wire/core/shapes.ts'

export const tokenStates = ['unused', 'bound', 'used', 'expired', 'revoked'] as const

export const TokenView = Type.Object({
  id: Type.String(),
  scope: oneOf(['node', 'domain']),
  node: orNull(Type.String()),
  profile: Type.String(),
  replace: Type.Boolean(),
  state: oneOf(tokenStates),
  created_by: Type.String(),
  created_at: Type.String(),
  expires_at: Type.String(),
  used_at: orNull(Type.String()),
  used_by: orNull(Type.String()),
  /** Why it is good for nothing, where it was no operator who withdrew it. Left out by older planes. */
  why: Type.Optional(orNull(Type.String())),
})
export type TokenView = Static<typeof TokenView>

/** `POST /v1/tokens`. Without `node`: a token of the domain. */
export const CreateTokenRequest = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    profile: Type.Optional(text(64)),
    replace: Type.Optional(Type.Boolean()),
    expires_ms: Type.Optional(Type.Integer({ minimum: 1000 })),
  },
  closed,
)
export type CreateTokenRequest = Static<typeof CreateTokenRequest>
/** The only time the secret is shown; `join` carries it too. */
export const CreateTokenAnswer = Type.Object({
  token: TokenView,
  secret: Type.String(),
  join: Type.String(),
  /** The node was not known and has been registered. */
  registered: Type.Boolean(),
})
/** A larger batch is sent in several calls; a call is also bounded by the size of a body. */
export const mostBatchLines = 100
/** Names the calls of one batch: the file that its tokens are written to has the same name in it. */
const batchShape = '^[0-9A-Za-z]{16,64}$'
/** What a line leaves out is not compared with a node that is registered. */
export const TokenBatchLine = Type.Object(
  {
    id: NodeIdText,
    profile: Type.Optional(text(64)),
    macs: Type.Optional(Type.Array(text(17), { maxItems: 64 })),
    bmc_serial: Type.Optional(text(128)),
    /** Added to those of the node. */
    tags: Type.Optional(Type.Array(TagText, { maxItems: 64 })),
  },
  closed,
)
export type TokenBatchLine = Static<typeof TokenBatchLine>
/** `POST /v1/tokens/batch` */
export const TokenBatchRequest = Type.Object(
  {
    batch: Type.String({ pattern: batchShape }),
    /** Higher for each attempt at the batch. A call that is as old as the newest token of a node, or older, is refused for its line. */
    attempt: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    expires_ms: Type.Optional(Type.Integer({ minimum: 1000 })),
    lines: Type.Array(TokenBatchLine, { minItems: 1, maxItems: mostBatchLines }),
  },
  closed,
)
/** In the order of the lines. */
export const TokenBatchAnswer = Type.Object({
  results: Type.Array(
    Type.Object({
      id: Type.String(),
      /** The node was not known and has been registered. */
      registered: Type.Boolean(),
      /** Unused tokens of an earlier call of this batch that this one has replaced. */
      withdrawn: Type.Integer(),
      /** Null: refused. */
      token: orNull(TokenView),
      /** The only time it is shown; null: refused. */
      join: orNull(Type.String()),
      refused: orNull(ErrorBody),
    }),
  ),
})
export type TokenBatchAnswer = Static<typeof TokenBatchAnswer>
/** A page of at most 1,000, and the one behind the token `after`. */
const TokenListQuery = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    after: Type.Optional(Type.String({ pattern: '^[0-9A-Za-z_-]{1,64}$' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)
/** `next` is not there in answers of planes before 0.6, which list the newest 1,000. */
export const TokenListAnswer = Type.Object({
  tokens: Type.Array(TokenView),
  next: Type.Optional(orNull(Type.String())),
})

export const tokenView = (token: Token, nowMs: number): TokenView => {
  const used = token.state.kind === 'used' ? token.state : null
  return {
    id: token.id,
    scope: token.scope.kind,
    node: token.scope.kind === 'node' ? token.scope.node : null,
    profile: token.profile,
    replace: token.replace,
    state: tokenStatus(token, nowMs),
    created_by: token.createdBy,
    created_at: isoTime(token.createdAtMs),
    expires_at: isoTime(token.expiresAtMs),
    used_at: used === null ? null : isoTime(used.atMs),
    used_by: used === null ? null : used.node,
    why: token.state.kind === 'revoked' ? (token.state.why ?? null) : null,
  }
}

const exampleSecret = 'enroll_(43 characters)'
const exampleRoot = 'fa0b6d2c7e4f1a3b5c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b'

export const tokenApi = {
  create: endpoint({
    method: 'POST',
    path: '/v1/tokens',
    access: 'operator',
    summary: 'Makes an enrollment token; its secret is shown this once',
    body: CreateTokenRequest,
    answer: CreateTokenAnswer,
    example: {
      status: 201,
      request: { node: 'gpu-001' },
      answer: {
        token: {
          id: '01KTZ4M5N6P7Q8R9S0T1V2W3X4',
          scope: 'node',
          node: 'gpu-001',
          profile: 'gpu-cloud',
          replace: false,
          state: 'unused',
          created_by: 'operator:ada',
          created_at: '2026-11-15T09:30:00.000Z',
          expires_at: '2026-11-15T10:00:00.000Z',
          used_at: null,
          used_by: null,
        },
        secret: exampleSecret,
        join: `muster1,https://plane.example:8443,muster.local,sha256:${exampleRoot},${exampleSecret}`,
        registered: true,
      },
    },
  }),
  createBatch: endpoint({
    method: 'POST',
    path: '/v1/tokens/batch',
    access: 'operator',
    summary:
      'Registers nodes and makes a token for each, every line in a transaction of its own; safe to repeat as the next attempt',
    body: TokenBatchRequest,
    answer: TokenBatchAnswer,
    example: {
      request: {
        batch: '01KTZ4M5N6P7Q8R9S0T1V2W3X4',
        attempt: 1,
        lines: [{ id: 'gpu-001', tags: ['rack:r12'] }, { id: 'gpu-002' }],
      },
    },
  }),
  list: endpoint({
    method: 'GET',
    path: '/v1/tokens',
    access: 'viewer',
    summary: 'Enrollment tokens, newest first',
    query: TokenListQuery,
    answer: TokenListAnswer,
  }),
  revoke: endpoint({
    method: 'POST',
    path: '/v1/tokens/:id/revoke',
    access: 'operator',
    summary: 'Withdraws a token that has not been used',
    params: IdParams,
    body: EmptyRequest,
    answer: TokenView,
  }),
}
