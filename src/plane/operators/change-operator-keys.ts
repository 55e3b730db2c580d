import type { Attribution } from '#domain/core/change.ts'
import { decideCreateKey, decideRevokeKey, type KeySeal } from '#domain/operators/operator-keys.ts'
import type { OperatorKey, Role } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { sortableId, type Random } from '#platform/random.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'

/** The secret is shown once; only its hash is kept. */
export type KeyMade = { readonly kind: 'made'; readonly key: OperatorKey; readonly secret: string }

/** `expiresAtMs` null: it has no end. */
export type KeyAsked = { readonly name: string; readonly role: Role; readonly expiresAtMs: number | null }

export const createOperatorKey = async (
  core: FlowCore,
  keySeal: KeySeal,
  asked: KeyAsked,
  by: Attribution,
): Promise<KeyMade | Refusal> => {
  const { secret, hash } = newOperatorSecret(core.random)
  const keyId = sortableId(core.clock.nowMs(), core.random)
  const done = await commitDecision(core, async () => {
    const existing = await core.store.operatorKeys()
    return decideCreateKey({ keyId, hash, ...asked, existing, keySeal, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'made', key: done.key, secret }
}

export const revokeOperatorKey = async (
  core: FlowCore,
  keySeal: KeySeal,
  id: string,
  by: Attribution,
): Promise<{ readonly kind: 'revoked'; readonly key: OperatorKey } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const keys = await core.store.operatorKeys()
    const key = keys.find(({ value }) => value.id === id)
    if (key === undefined) return refuse('KEY_NOT_FOUND')
    const others = keys.filter((other) => other !== key && keySeal.isSealed(other.value))
    return decideRevokeKey({ key, others, keySeal, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'revoked', key: done.key }
}

/** Shown once; only the hash is kept. */
export const newOperatorSecret = (random: Random): { readonly secret: string; readonly hash: string } => {
  const secret = `muster_key_${random.bytes(32).toString('base64url')}`
  return { secret, hash: hashOfSecret(secret) }
}

/** What the row of an operator key is found by. */
export const hashOfSecret = (secret: string): string => sha256Hex(secret)
