// Enrollment tokens. Making one needs an authenticated operator.

import type { Static } from 'typebox'
import type { Refusal } from '#domain/core/refusal.ts'
import { createToken, type CreateTokenDeps } from './create-token.ts'
import { revokeToken } from './revoke-token.ts'
import { tokenView } from './token-view.ts'
import {
  CreateTokenAnswer,
  CreateTokenRequest,
  EmptyRequest,
  TokenListAnswer,
  TokenListQuery,
  TokenView,
} from '#wire/api/operator-api.ts'
import { attributionOf, IdParams, param } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

const mostListed = 1000

export const operatorTokenRoutes = (deps: CreateTokenDeps): readonly Route[] => [
  {
    method: 'POST',
    path: '/v1/tokens',
    access: 'operator',
    summary: 'Makes an enrollment token; its secret is shown this once',
    body: CreateTokenRequest,
    answer: CreateTokenAnswer,
    handle: (call) => make(deps, call),
  },
  {
    method: 'GET',
    path: '/v1/tokens',
    access: 'viewer',
    summary: 'Enrollment tokens, newest first',
    query: TokenListQuery,
    answer: TokenListAnswer,
    handle: async (call) => {
      const { node = null } = call.query as Static<typeof TokenListQuery>
      const tokens = await deps.store.tokens({ node, limit: mostListed })
      return answer({ tokens: tokens.map(({ value }) => tokenView(value, deps.clock.nowMs())) })
    },
  },
  {
    method: 'POST',
    path: '/v1/tokens/:id/revoke',
    access: 'operator',
    summary: 'Withdraws a token that has not been used',
    params: IdParams,
    body: EmptyRequest,
    answer: TokenView,
    handle: async (call) => {
      const done = await revokeToken(deps, param(call, 'id'), attributionOf(call))
      return done.kind === 'refused' ? done : answer(tokenView(done.token, deps.clock.nowMs()))
    },
  },
]

const make = async (deps: CreateTokenDeps, call: Call): Promise<Answer | Refusal> => {
  const { node = null, profile = null, replace = false, expires_ms: ttlMs = null } = call.body as CreateTokenRequest
  const made = await createToken(deps, { node, profile, replace, ttlMs }, attributionOf(call))
  if (made.kind === 'refused') return made
  const { secret, join, registered } = made
  return answer({ token: tokenView(made.token, deps.clock.nowMs()), secret, join, registered }, 201)
}
