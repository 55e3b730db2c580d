// What a node recovers with: registered at its enrollment, presented at a recovery, and rotated where it is a bearer token.

import type { Node, NodeId, Recovery, RecoveryCredential } from './node.ts'
import type { Profile } from './profile.ts'
import { slotsOf } from './certificate.ts'

/** The recovery credential that a node asks to register. The caller has checked the proof of the key. */
export type RecoveryRegistrationFacts =
  { readonly kind: 'key'; readonly spki: string; readonly publicKey: string } | { readonly kind: 'bearer' }

/** The credential of a recovery request. The signature of a key has been checked; whose credential it is has not. */
export type PresentedRecovery =
  | { readonly by: 'key'; readonly spki: string }
  | { readonly by: 'bearer'; readonly hash: string }
  | { readonly by: 'repair'; readonly hash: string }

/** A presented counter. Its signature has been checked: the plane has issued it. */
export type PresentedCounter = {
  readonly domain: string
  readonly node: NodeId
  readonly epoch: number
  readonly counter: number
}

/**
 * The oldest counter a holder may have without being a copy: an unused successor may never have arrived. If a copy has that
 * successor, the next certificate makes its counter the old one.
 */
export const oldestCounter = (node: Node): number => {
  const slots = slotsOf(node)
  return slots === null || slots.pending === null ? node.counter : node.counter - 1
}

export const credentialMatches = (registered: RecoveryCredential, presented: PresentedRecovery): boolean => {
  switch (registered.kind) {
    case 'key':
      return presented.by === 'key' && presented.spki === registered.spki
    case 'bearer':
      return presented.by === 'bearer' && (presented.hash === registered.hash || presented.hash === registered.former)
  }
}

/** What is registered with a new epoch. Null: nothing, because nothing was asked or the profile denies recovery. */
export const registeredRecovery = (
  registration: RecoveryRegistrationFacts | null,
  profile: Profile,
  nextBearerHash: string | null,
  nowMs: number,
): Recovery | null => {
  if (registration === null || profile.recovery.mode === 'deny') return null
  const credential = newCredential(registration, nextBearerHash, nowMs)
  return credential === null ? null : { credential, recoveredAtMs: [], denied: null, episode: null }
}

const newCredential = (
  registration: RecoveryRegistrationFacts,
  nextBearerHash: string | null,
  registeredAtMs: number,
): RecoveryCredential | null => {
  if (registration.kind === 'key') return { ...registration, registeredAtMs }
  return nextBearerHash === null ? null : { kind: 'bearer', hash: nextBearerHash, former: null, registeredAtMs }
}

/**
 * A bearer token is replaced by the next one; a key stays. Where an earlier rotation was never confirmed by a first use,
 * the node still holds the token from before it: that one stays good, and the one in between does not.
 */
export const rotated = (credential: RecoveryCredential, nextBearerHash: string | null): RecoveryCredential =>
  credential.kind === 'key' || nextBearerHash === null
    ? credential
    : { ...credential, hash: nextBearerHash, former: credential.former ?? credential.hash }

/** The certificate a token came with is in use, so its holder has the token: the one before it is no longer needed. */
export const rotationConfirmed = (credential: RecoveryCredential): RecoveryCredential =>
  credential.kind === 'bearer' ? { ...credential, former: null } : credential
