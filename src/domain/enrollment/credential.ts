// The credential of an enrollment. Whether there is one at all is cheap, and decided before a request is parsed, so that
// anonymous callers are charged before they cost anything (ruling 2). What a token still allows, and what uses it up, is
// decided with the rest of the enrollment.

import { readOf, type Change, type Read, type Row, type Write, entry } from '#domain/core/change.ts'
import { isFromFuture } from '#domain/core/certificate.ts'
import { hardwareMatches } from '#domain/core/hardware-identity.ts'
import type { HardwareIdentity, Node, NodeId, Slot } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { EnrollFacts, EnrollVerdict } from './enrollment.ts'
import type { Token } from '#domain/core/token.ts'

export type Credential =
  /** `state`: a used token still answers its own key, which only the request can show. */
  | { readonly method: 'token'; readonly token: Row<Token>; readonly state: 'unused' | 'taken' }
  | { readonly method: 'hardware'; readonly node: Row<Node> }

/** `token` is null when no row has the hash of the secret. */
export const judgeToken = (token: Row<Token> | null, nowMs: number, toleranceMs: number): Credential | Refusal => {
  if (token === null) return refuse('TOKEN_INVALID')
  switch (token.value.state.kind) {
    case 'revoked':
      return refuse('TOKEN_INVALID', token.value.state.why ?? null)
    case 'used':
    case 'bound':
      return { method: 'token', token, state: 'taken' }
    case 'unused':
      if (nowMs >= token.value.expiresAtMs) return refuse('TOKEN_EXPIRED')
      if (isFromFuture(token.value.createdAtMs, nowMs, toleranceMs))
        return refuse('TOKEN_INVALID', 'it was made by a clock that was ahead')
      return { method: 'token', token, state: 'unused' }
  }
}

/** A token that its machine could enroll with now; null: any other. `node`: that of its scope, if it has one. */
export const usableToken = (
  token: Row<Token> | null,
  node: Row<Node> | null,
  nowMs: number,
  toleranceMs: number,
): Token | null => {
  const judged = judgeToken(token, nowMs, toleranceMs)
  if ('code' in judged || judged.method !== 'token' || judged.state !== 'unused') return null
  const { value } = judged.token
  if (value.scope.kind === 'domain') return value
  if (node === null || node.value.tenure !== value.scope.tenure) return null
  return ['revoked', 'quarantined'].includes(node.value.membership.kind) ? null : value
}

/** `claimants`: every node that holds any of the reported addresses. A revoked node counts only where no other has them. */
export const judgeHardware = (
  reported: HardwareIdentity,
  claimants: readonly Row<Node>[],
): Extract<Credential, { method: 'hardware' }> | Refusal => {
  const living = claimants.filter(({ value }) => value.membership.kind !== 'revoked')
  const [node, other] = living.length === 0 ? claimants : living
  if (node === undefined) return refuse('NODE_NOT_ENROLLED')
  if (other !== undefined) {
    return refuse('HARDWARE_IDENTITY_CONFLICT', 'the addresses of this machine are registered to more than one node')
  }
  return hardwareMatches(node.value.hardware, reported)
    ? { method: 'hardware', node }
    : refuse('NODE_NOT_ENROLLED', 'part of the hardware identity matches a node, and part of it does not')
}

/**
 * A token that is taken proves nothing before the request shows the key it was taken with, nor does a tombstone. Addresses
 * are no secret: where the profile asks for more than them, a caller that knows one is still anonymous.
 */
export const isProven = (credential: Credential, profile: Profile | null): boolean => {
  if (credential.method === 'token') return credential.state === 'unused'
  const { membership } = credential.node.value
  return membership.kind !== 'revoked' && (profile?.join.allOf.every((method) => method === 'hardware') ?? false)
}

/** Whom a refusal concerns, for the journal. */
export const aboutCredential = (credential: Credential) => {
  if (credential.method === 'hardware') return { node: credential.node.value.id, token: null, actor: 'hardware' }
  return aboutToken(credential.token.value)
}

export const aboutToken = ({ id, scope }: Token) => ({
  node: scope.kind === 'node' ? scope.node : null,
  token: id,
  actor: `token:${id}`,
})

export const tokenAnswers = ({ credential }: EnrollFacts, spki: string): boolean => {
  if (credential.method !== 'token') return false
  const state = credential.token.value.state
  return state.kind === 'unused' || ((state.kind === 'used' || state.kind === 'bound') && state.spki === spki)
}

/** One of the domain that is bound has registered nothing yet: its node comes with the certificate. */
export const registersNew = ({ scope, state }: Token): boolean =>
  scope.kind === 'domain' && (state.kind === 'unused' || state.kind === 'bound')

/** A token that is bound stays so: it is unused again for nobody. */
export const boundToKey = (credential: Credential, spki: string, node: NodeId): readonly Write[] => {
  if (credential.method !== 'token' || credential.token.value.state.kind !== 'unused') return []
  return [{ put: 'token', value: { ...credential.token.value, state: { kind: 'bound', spki, node } } }]
}

export const credentialReads = ({ credential, proof }: EnrollFacts): readonly Read[] => [
  ...(credential.method === 'token' ? [readOf('token', credential.token.value.hash, credential.token)] : []),
  // A revocation of another node with the same key bans it, and does not write this node.
  ...(proof === null ? [] : [readOf('key-ban', proof.spki, proof.ban)]),
]

export const tokenTaken = ({ credential, node, key, nowMs }: EnrollFacts): Refusal | null => {
  if (credential.method !== 'token' || credential.state !== 'taken') return null
  const { state, expiresAtMs } = credential.token.value
  const byThisKey = 'spki' in state && key.kind === 'key' && state.spki === key.spkiHash
  // Its own machine asks again: the state of the node keeps it out, so the refusal names that state.
  if (byThisKey && node?.value.membership.kind === 'quarantined') return refuse('NODE_QUARANTINED')
  if (byThisKey && node?.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (byThisKey && state.kind === 'bound') return nowMs < expiresAtMs ? null : refuse('TOKEN_EXPIRED')
  if (byThisKey && nowMs < expiresAtMs && neverAnswered(node, state.spki)) return null
  return refuse('TOKEN_USED')
}

/** The answer was lost, and has expired before it could be given again: the one user the token has is still not in. */
const neverAnswered = (node: Row<Node> | null, spki: string): boolean =>
  node?.value.membership.kind === 'enrolled' && node.value.membership.slots.current.spki === spki

/** A token does not outlive a tombstone or a quarantine, however often the node has come back since. */
export const tokenOutlived = ({ credential, node }: EnrollFacts): Refusal | null => {
  if (credential.method !== 'token' || node === null) return null
  const { scope } = credential.token.value
  if (scope.kind === 'domain' || scope.tenure === node.value.tenure) return null
  return refuse('TOKEN_INVALID', 'it was made before the node was registered anew or released')
}

/** The caller that was answered is the one user a token has: left unused, the token would let another caller in. */
export const spentByAnswer = ({ credential, by, nowMs }: EnrollFacts, node: Row<Node>, slot: Slot): Change | null => {
  if (credential.method !== 'token' || credential.state !== 'unused') return null
  const { token } = credential
  const { id } = node.value
  const state = { kind: 'used', spki: slot.spki, node: id, atMs: nowMs } as const
  const about = { node: id, epoch: node.value.epoch, token: token.value.id, issuer: slot.issuer, serial: slot.serial }
  return {
    reads: [readOf('token', token.value.hash, token), readOf('node', id, node)],
    writes: [{ put: 'token', value: { ...token.value, state } }],
    entries: [
      entry(by, nowMs, 'enrollment_token.used', about, { token_id: token.value.id, key: `SHA256:${slot.spki}` }),
    ],
  }
}

/**
 * A caller with this token brought the WireGuard key of another machine, and must not get to try the next one (ruling 5, the
 * table of document 002). A caller without a token is refused and has nothing to lose.
 */
export const spentByRefusal = (
  refusal: Refusal,
  { credential, wireguard, nodeId, by, nowMs }: EnrollFacts,
): EnrollVerdict => {
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
