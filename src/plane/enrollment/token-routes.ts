// Enrollment tokens. Making one needs an authenticated operator.

import { createToken, revokeToken, type JoinTarget } from './change-tokens.ts'
import { tokenView, tokenApi } from '#wire/enrollment/token-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'

const mostListed = 1000

export const operatorTokenRoutes = (core: FlowCore, target: JoinTarget): readonly Route[] =>
  serve(tokenApi, {
    create: (call) => make(core, target, call),
    list: async (call) => {
      const { node = null } = call.query
      const tokens = await core.store.tokens({ node, limit: mostListed })
      return answer({ tokens: tokens.map(({ value }) => tokenView(value, core.clock.nowMs())) })
    },
    revoke: async (call) => {
      const done = await revokeToken(core, call.params.id, attributionOf(call))
      return done.kind === 'refused' ? done : answer(tokenView(done.token, core.clock.nowMs()))
    },
  })

const make = async (core: FlowCore, target: JoinTarget, call: CallOf<typeof tokenApi.create>) => {
  const { node = null, profile = null, replace = false, expires_ms: ttlMs = null } = call.body
  const made = await createToken(core, target, { node, profile, replace, ttlMs }, attributionOf(call))
  if (made.kind === 'refused') return made
  const { secret, join, registered } = made
  return answer({ token: tokenView(made.token, core.clock.nowMs()), secret, join, registered }, 201)
}
