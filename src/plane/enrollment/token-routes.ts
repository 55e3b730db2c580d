// Enrollment tokens. Making one needs an authenticated operator.

import { createToken, revokeToken, type CreateTokenDeps } from './change-tokens.ts'
import { tokenView, tokenApi } from '#wire/enrollment/token-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'

const mostListed = 1000

export const operatorTokenRoutes = (deps: CreateTokenDeps): readonly Route[] =>
  serve(tokenApi, {
    create: (call) => make(deps, call),
    list: async (call) => {
      const { node = null } = call.query
      const tokens = await deps.store.tokens({ node, limit: mostListed })
      return answer({ tokens: tokens.map(({ value }) => tokenView(value, deps.clock.nowMs())) })
    },
    revoke: async (call) => {
      const done = await revokeToken(deps, call.params.id, attributionOf(call))
      return done.kind === 'refused' ? done : answer(tokenView(done.token, deps.clock.nowMs()))
    },
  })

const make = async (deps: CreateTokenDeps, call: CallOf<typeof tokenApi.create>) => {
  const { node = null, profile = null, replace = false, expires_ms: ttlMs = null } = call.body
  const made = await createToken(deps, { node, profile, replace, ttlMs }, attributionOf(call))
  if (made.kind === 'refused') return made
  const { secret, join, registered } = made
  return answer({ token: tokenView(made.token, deps.clock.nowMs()), secret, join, registered }, 201)
}
