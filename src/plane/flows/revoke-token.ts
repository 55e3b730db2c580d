import type { Attribution } from '#domain/decision.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import type { Token } from '#domain/token.ts'
import { decideRevokeToken } from '#domain/tokens.ts'
import type { Store } from '#plane/store/store.ts'
import type { Clock } from '#platform/clock.ts'
import { commitDecision, type CommitDeps } from './commit-decision.ts'

export type RevokeTokenDeps = CommitDeps & { readonly store: Store; readonly clock: Clock }

export const revokeToken = async (
  deps: RevokeTokenDeps,
  id: string,
  by: Attribution,
): Promise<{ readonly kind: 'revoked'; readonly token: Token } | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const token = await deps.store.tokenById(id)
    return token === null ? refuse('TOKEN_NOT_FOUND') : decideRevokeToken({ token, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'revoked', token: done.token }
}
