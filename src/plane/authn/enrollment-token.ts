// Proof by enrollment token, for what a machine needs before it has an identity: `Authorization: Bearer enroll_...`. It is looked up
// and not used up. Why a token is good for nothing is said to operators only: a caller learns that it is, and no more.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Anonymous, TokenPrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { usableToken } from '#domain/enrollment/credential.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Core } from '#plane/core/core.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'

export type TokenAuthn = (
  authorization: string | undefined,
  source: string,
) => Promise<TokenPrincipal | Anonymous | Refusal>

export type TokenAuthnParts = {
  readonly settings: () => Pick<DomainSettings, 'clockToleranceMs'>
  /** Failing callers are charged to it where their refusal is recorded. */
  readonly anonymousBudget: Pick<CallerBudget, 'room' | 'retryAfterMs'>
}

const bearer = /^Bearer (enroll_[A-Za-z0-9_-]{43})$/i

export const openTokenAuthn =
  ({ store, clock }: Pick<Core, 'store' | 'clock'>, { settings, anonymousBudget }: TokenAuthnParts): TokenAuthn =>
  async (authorization, source) => {
    if (authorization === undefined) return { kind: 'anonymous', source }
    const secret = bearer.exec(authorization)?.[1] ?? null
    const row = secret === null ? null : await store.get('token', sha256Hex(secret))
    const scope = row?.value.scope
    const node = scope?.kind === 'node' ? await store.get('node', scope.node) : null
    const token = usableToken(row, node, clock.nowMs(), settings().clockToleranceMs)
    if (token !== null)
      return { kind: 'token', id: token.id, node: node?.value.id ?? null, expiresAtMs: token.expiresAtMs, source }
    if (!anonymousBudget.room(source))
      return { ...refuse('RATE_LIMITED'), retryAfterMs: anonymousBudget.retryAfterMs() }
    // Without the node: the next step would name it, and so tell a token that was good from one that never was.
    const about = row === null ? {} : { about: { token: row.value.id, actor: `token:${row.value.id}` } }
    return { ...refuse('TOKEN_INVALID'), ...about }
  }
