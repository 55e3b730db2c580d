// Limits how fast one source may try operator keys. Every try costs a hash and a read of the store, on PostgreSQL a round
// trip, and nothing else slows it down. Past the limit a source is answered without a read, unless it brings a key that
// has worked here before: an attacker behind the same address must not lock operators out of their own plane.

import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { OperatorPrincipal } from '#domain/core/principal.ts'
import { openRateLimit } from '#plane/limits/rate-limit.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Clock } from '#platform/clock.ts'
import { sourceOf } from '#platform/source-shares.ts'

export type AuthenticateOperator = (
  authorization: string | undefined,
  source: string,
  cutOff: boolean,
) => Promise<OperatorPrincipal | Refusal>

const limits = { perMinute: Infinity, perMinutePerKey: 60 }
/** Beyond this number, sources are not counted: refusing them all would let an attacker lock operators out. */
const sourcesCounted = 16_384
const keysRemembered = 256

/** `local`: callers on the Unix socket, which only the plane's own user and group can open, are not limited. */
export const limitGuesses = (authenticate: AuthenticateOperator, clock: Clock): AuthenticateOperator => {
  const tries = openRateLimit(clock, () => limits, { mostKeys: sourcesCounted })
  // Hashes of headers, never the keys. Least recently used first.
  const worked = new Set<string>()
  return async (authorization, address, cutOff) => {
    if (authorization === undefined || address === 'local') return authenticate(authorization, address, cutOff)
    const tried = sha256Hex(authorization)
    const source = sourceOf(address)
    if (!worked.has(tried) && !tries.room(source))
      return { ...refuse('RATE_LIMITED', 'too many wrong operator keys'), retryAfterMs: tries.retryAfterMs() }
    const outcome = await authenticate(authorization, address, cutOff)
    worked.delete(tried)
    if (isRefusal(outcome)) {
      if (outcome.code === 'OPERATOR_KEY_INVALID') tries.take(source)
      return outcome
    }
    if (worked.size >= keysRemembered) for (const oldest of worked.keys()) if (worked.delete(oldest)) break
    worked.add(tried)
    return outcome
  }
}
