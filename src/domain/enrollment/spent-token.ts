// A token that was used up by a refusal: somebody who had it brought the WireGuard key of another machine, and must not get
// to try the next one (ruling 5, the table of seed 002).

import { readOf } from '#domain/core/change.ts'
import { entry } from '#domain/core/decision.ts'
import type { EnrollFacts, EnrollVerdict } from './enrollment.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Token } from './token.ts'

/** Whoever came without a token is refused and has nothing to lose. */
export const spentOn = (refusal: Refusal, { credential, wireguard, nodeId, by, nowMs }: EnrollFacts): EnrollVerdict => {
  if (credential.method !== 'token' || wireguard === null) return refusal
  const { token } = credential
  const { id, hash, scope, state: before } = token.value
  const why = `${refusal.code}: it was brought with the WireGuard key of another node`
  const state: Token['state'] = { kind: 'revoked', by: 'system:enrollment-service', atMs: nowMs, why }
  const about = { node: scope.kind === 'node' ? scope.node : null, token: id }
  const { publicKey, fingerprint } = wireguard.brought
  return {
    kind: 'refused-and-spent',
    refusal,
    change: {
      reads: [readOf('token', hash, token), readOf('wireguard-key', publicKey, wireguard.key)],
      writes: [{ put: 'token', value: { ...token.value, state } }],
      entries: [
        entry(by, nowMs, 'refused', about, {
          code: refusal.code,
          detail: refusal.detail,
          attempt: 'POST /v1/enroll',
          asked_for: nodeId,
          wireguard_pubkey_fingerprint: `SHA256:${fingerprint}`,
          key_of: wireguard.key === null ? null : wireguard.key.value.node,
          token_consumed: true,
        }),
        entry(by, nowMs, 'enrollment_token.revoked', about, { token_id: id, was: before.kind, why: refusal.code }),
      ],
    },
  }
}
