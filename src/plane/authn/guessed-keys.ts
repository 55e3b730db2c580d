// Limits how fast one source may try operator keys. Every try costs a hash and a read of the store, on PostgreSQL a round
// trip, and nothing else slows it down. Past the limit a source is answered without a read, unless it brings a key that
// has worked here before: an attacker behind the same address must not lock operators out of their own plane.

import { isRefusal, refuse, type Refusal } from '#domain/refusal.ts'
import type { OperatorPrincipal } from '#domain/principal.ts'
import { openStrangersBudget } from '#plane/flows/strangers-budget.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Clock } from '#platform/clock.ts'

export type AuthenticateOperator = (
  authorization: string | undefined,
  source: string,
  cutOff: boolean,
) => Promise<OperatorPrincipal | Refusal>

const limits = { perMinute: 6000, perMinutePerSource: 60 }
const keysRemembered = 256

/** `local`: callers on the Unix socket, which only the plane's own user and group can open, are not limited. */
export const limitGuesses = (authenticate: AuthenticateOperator, clock: Clock): AuthenticateOperator => {
  const guesses = openStrangersBudget(clock, () => limits)
  // Hashes of headers, never the keys. Least recently used first.
  const worked = new Set<string>()
  return async (authorization, source, cutOff) => {
    if (authorization === undefined || source === 'local') return authenticate(authorization, source, cutOff)
    const tried = sha256Hex(authorization)
    if (!worked.has(tried) && !guesses.room(source)) {
      guesses.charge(source)
      return { ...refuse('RATE_LIMITED', 'too many wrong operator keys'), retryAfterMs: guesses.retryAfterMs() }
    }
    const outcome = await authenticate(authorization, source, cutOff)
    worked.delete(tried)
    if (isRefusal(outcome)) {
      if (outcome.code === 'OPERATOR_KEY_INVALID') guesses.charge(source)
      return outcome
    }
    if (worked.size >= keysRemembered) for (const oldest of worked.keys()) if (worked.delete(oldest)) break
    worked.add(tried)
    return outcome
  }
}
