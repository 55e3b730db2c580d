// An enrollment token: `unused -> bound(public key) -> used`, single use (ruling 5).

import type { NodeId } from './node.ts'

export type Token = {
  readonly id: string
  /** SHA-256 of the secret, hex: the secret itself is never stored. It is also the token's key in the store. */
  readonly hash: string
  /** A token for a node speaks for it in the tenure it was made in, and in no other. */
  readonly scope:
    { readonly kind: 'node'; readonly node: NodeId; readonly tenure: number } | { readonly kind: 'domain' }
  /** For a token of the domain: the profile of the node it registers. For a token of a node: the node's own. */
  readonly profile: string
  /** May take the place of an active node. */
  readonly replace: boolean
  /** The name of the plane in its join string, as NameClaim writes it; null: not known, made before 0.4.0. */
  readonly serverName: string | null
  /** The batch that it was made in; left out where it was made alone. Planes of 0.4 keep the field and ignore it. */
  readonly batch?: string
  /** Which attempt at that batch. */
  readonly attempt?: number
  readonly createdBy: string
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly state: TokenState
}

export type TokenState =
  | { readonly kind: 'unused' }
  /** An external issuer has been asked to sign for this key; only the same key may go on. */
  | { readonly kind: 'bound'; readonly spki: string; readonly node: NodeId }
  | { readonly kind: 'used'; readonly spki: string; readonly node: NodeId; readonly atMs: number }
  /** `why`: where it was no operator who withdrew it. */
  | { readonly kind: 'revoked'; readonly by: string; readonly atMs: number; readonly why?: string }

export const tokenSecretShape = /^enroll_[A-Za-z0-9_-]{43}$/

export type TokenStatus = 'unused' | 'bound' | 'used' | 'expired' | 'revoked'

/** What a token is good for now: only an unused or bound one can expire. */
export const tokenStatus = (token: Token, nowMs: number): TokenStatus => {
  const { kind } = token.state
  return (kind === 'unused' || kind === 'bound') && nowMs >= token.expiresAtMs ? 'expired' : kind
}
