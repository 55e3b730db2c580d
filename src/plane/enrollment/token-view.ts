import type { Token } from '#domain/enrollment/token.ts'
import { tokenStanding } from '#domain/enrollment/tokens.ts'
import { isoTime } from '#platform/clock.ts'
import type { TokenView } from '#wire/api/operator-api.ts'

export const tokenView = (token: Token, nowMs: number): TokenView => {
  const used = token.state.kind === 'used' ? token.state : null
  return {
    id: token.id,
    scope: token.scope.kind,
    node: token.scope.kind === 'node' ? token.scope.node : null,
    profile: token.profile,
    replace: token.replace,
    state: tokenStanding(token, nowMs),
    created_by: token.createdBy,
    created_at: isoTime(token.createdAtMs),
    expires_at: isoTime(token.expiresAtMs),
    used_at: used === null ? null : isoTime(used.atMs),
    used_by: used === null ? null : used.node,
    why: token.state.kind === 'revoked' ? (token.state.why ?? null) : null,
  }
}
