// Proof by operator key: `Authorization: Bearer muster_key_...`. The key itself is never stored, only its hash; the
// socket or address a call arrives on proves nothing.

import type { OperatorKey, OperatorPrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { isExpired } from '#domain/operators/operator-keys.ts'
import type { Feed } from '#plane/core/feed.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import type { KeyBook } from './operator-key-book.ts'

const bearer = /^Bearer (muster_key_[A-Za-z0-9_-]{43})$/i

export type OperatorAuthn = {
  /** `cutOff`: the call is a cut-off, which an operator may also order while no key can be looked up. */
  byKey(authorization: string | undefined, source: string, cutOff: boolean): Promise<OperatorPrincipal | Refusal>
}

/**
 * How long a key that was looked up may order cut-offs while the store cannot be read. A key that another replica revokes in
 * that time can still order cut-offs at this replica, and nothing else.
 */
const rememberedMs = 15 * 60_000
const mostRemembered = 256

type Known = Pick<OperatorKey, 'id' | 'name' | 'role' | 'expiresAtMs'> & { readonly seenMs: number }

export const openOperatorAuthn = (
  store: Pick<Store, 'get'>,
  book: Pick<KeyBook, 'grants'>,
  clock: Clock,
  feed: Pick<Feed, 'subscribe'>,
): OperatorAuthn => {
  const known = new Map<string, Known>()
  // By the entry, which other replicas receive, and not by the row, which they do not.
  feed.subscribe('known operator keys', ({ entries }) => {
    for (const { entry } of entries)
      if (entry.type === 'operator_key.revoked')
        for (const [hash, { id }] of known) if (id === entry.body['key_id']) known.delete(hash)
  })
  const remember = (hash: string, key: OperatorKey): void => {
    const [oldest] = known.keys()
    if (known.size >= mostRemembered && oldest !== undefined && !known.has(hash)) known.delete(oldest)
    known.delete(hash)
    const { id, name, role, expiresAtMs } = key
    known.set(hash, { id, name, role, expiresAtMs, seenMs: clock.monotonicMs() })
  }
  const lookUp = async (hash: string, cutOff: boolean): Promise<Omit<Known, 'seenMs'> | null> => {
    try {
      const found = await store.get('operator-key', hash)
      if (found === null || !(await book.grants(found))) {
        known.delete(hash)
        return null
      }
      remember(hash, found.value)
      return found.value
    } catch (error) {
      const before = known.get(hash)
      if (!cutOff || before === undefined || clock.monotonicMs() - before.seenMs > rememberedMs) throw error
      return before
    }
  }
  return {
    async byKey(authorization, source, cutOff) {
      if (authorization === undefined) return refuse('OPERATOR_KEY_REQUIRED')
      const secret = bearer.exec(authorization)?.[1]
      if (secret === undefined) return refuse('OPERATOR_KEY_INVALID', 'expected: Authorization: Bearer muster_key_...')
      const found = await lookUp(sha256Hex(secret), cutOff)
      if (found === null) return refuse('OPERATOR_KEY_INVALID')
      const { id, name, role, expiresAtMs } = found
      if (expiresAtMs !== null && isExpired(found, clock.nowMs()))
        return { ...refuse('OPERATOR_KEY_EXPIRED', `at ${isoTime(expiresAtMs)}`), about: { actor: `operator:${name}` } }
      return { kind: 'operator', id, name, role, credential: { by: 'operator-key' }, source }
    },
  }
}
