import type { Attribution } from '#domain/core/decision.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Token } from '#domain/enrollment/token.ts'
import { decideRevokeToken } from '#domain/enrollment/tokens.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const revokeToken = async (
  deps: FlowCore,
  id: string,
  by: Attribution,
): Promise<{ readonly kind: 'revoked'; readonly token: Token } | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const token = await deps.store.tokenById(id)
    return token === null ? refuse('TOKEN_NOT_FOUND') : decideRevokeToken({ token, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'revoked', token: done.token }
}
