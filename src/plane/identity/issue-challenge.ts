// A challenge is the plane's word for what time it is, to whoever asks with a nonce of their own; a recovery key signs it.
// Nothing is kept of it: it says by itself when it was made and for whom, and that it is ours.

import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Clock } from '#platform/clock.ts'
import type { Random } from '#platform/random.ts'
import { formatStatement, parseStatement, type Challenge } from '#wire/core/statement.ts'

export type ChallengeDeps = {
  readonly recovery: Pick<RecoveryAuthority, 'signStatement' | 'isOurStatement'>
  readonly domainName: string
  readonly clock: Clock
  readonly random: Random
}

/** Long enough for a slow machine to answer, too short for its answer to be worth stealing. */
const challengeLifetimeMs = 60_000
/** Replicas of one plane may differ by so much. */
const aheadMs = 5_000

export const issueChallenge = (
  { recovery, domainName, clock, random }: ChallengeDeps,
  asked: { readonly nonce: string; readonly node: NodeId | null },
): string => {
  const salt = random.bytes(16).toString('base64url')
  const challenge = { domain: domainName, node: asked.node, nonce: asked.nonce, salt, time_ms: clock.nowMs() }
  return formatStatement('challenge', challenge, (bytes) => recovery.signStatement(bytes))
}

/** Ours, of this domain, and young. For whom it was made is for the caller to compare. */
export const checkChallenge = (
  { recovery, domainName, clock }: ChallengeDeps,
  text: string,
): (Challenge & { readonly kind: 'challenge' }) | Refusal => {
  const parsed = parseStatement('challenge', text)
  if (parsed === null || !recovery.isOurStatement(parsed.signed, parsed.signature)) return refuse('CHALLENGE_INVALID')
  if (parsed.value.domain !== domainName) return refuse('CHALLENGE_INVALID', 'it is of another domain')
  const ageMs = clock.nowMs() - parsed.value.time_ms
  if (ageMs > challengeLifetimeMs || ageMs < -aheadMs) return refuse('CHALLENGE_INVALID', 'it is too old')
  return { ...parsed.value, kind: 'challenge' }
}
