// What a node recovers with: registered at its enrollment, presented at a recovery, and rotated where it is a bearer token.

import type { Node, NodeId, Recovery, RecoveryCredential } from './node.ts'
import type { Profile } from './profile.ts'
import { slotsOf } from './certificate.ts'

/** The recovery credential that a node asks to register. The caller has checked the proof of the key. */
export type RecoveryRegistrationFacts =
  | {
      readonly kind: 'key'
      readonly spki: string
      readonly publicKey: string
      /** The key that has signed that this one takes its place; left out: none has. */
      readonly replaces?: string
    }
  | { readonly kind: 'bearer' }

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
      return presented.by === 'key' && [registered.spki, registered.former?.spki].includes(presented.spki)
    case 'bearer':
      return presented.by === 'bearer' && (presented.hash === registered.hash || presented.hash === registered.former)
  }
}

/**
 * The hash of the bearer token that goes out with the next certificate; null: there is none. A function, because it is derived only where a
 * node recovers by such a token.
 */
export type NextBearerHash = () => string | null

/** What is registered with a new epoch. Null: nothing, because nothing was asked or the profile denies recovery. */
export const registeredRecovery = (
  registration: RecoveryRegistrationFacts | null,
  profile: Profile,
  nextBearerHash: NextBearerHash,
  nowMs: number,
): Recovery | null => {
  if (registration === null || profile.recovery.mode === 'deny') return null
  const credential = newCredential(registration, nextBearerHash, nowMs)
  return credential === null ? null : { credential, recoveredAtMs: [], denied: null, episode: null }
}

const newCredential = (
  registration: RecoveryRegistrationFacts,
  nextBearerHash: NextBearerHash,
  registeredAtMs: number,
): RecoveryCredential | null => {
  if (registration.kind === 'key') {
    const { spki, publicKey } = registration
    return { kind: 'key', spki, publicKey, registeredAtMs }
  }
  const hash = nextBearerHash()
  return hash === null ? null : { kind: 'bearer', hash, former: null, registeredAtMs }
}

/**
 * A bearer token is replaced by the next one; a key stays. Where an earlier rotation was never confirmed by a first use,
 * the node still holds what it had before: that stays good, and what came in between does not.
 */
export const rotated = (credential: RecoveryCredential, nextBearerHash: NextBearerHash): RecoveryCredential => {
  if (credential.kind === 'key') return formerKey(credential)
  const hash = nextBearerHash()
  if (hash === null) return credential
  return { ...credential, hash, former: credential.former ?? credential.hash }
}

type KeyCredential = Extract<RecoveryCredential, { kind: 'key' }>

const formerKey = (credential: KeyCredential): KeyCredential =>
  credential.former === undefined
    ? credential
    : { kind: 'key', ...credential.former, registeredAtMs: credential.registeredAtMs }

/** The certificate that a rotation came with is in use, so its holder has what came with it: what was before is no longer needed. */
export const rotationConfirmed = (credential: RecoveryCredential): RecoveryCredential => {
  if (credential.kind === 'bearer') return { ...credential, former: null }
  const { former: _, ...newest } = credential
  return newest
}

/** Of two that are good the holder has the one it presented: the other goes. */
export const heldBy = (credential: RecoveryCredential, presented: PresentedRecovery): RecoveryCredential => {
  if (presented.by === 'bearer' && credential.kind === 'bearer') {
    return { ...credential, hash: presented.hash, former: null }
  }
  if (presented.by !== 'key' || credential.kind !== 'key') return credential
  return presented.spki === credential.spki ? rotationConfirmed(credential) : formerKey(credential)
}

/**
 * The key in whose place another is registered; null: the registration replaces nothing. Whoever has a node's certificate alone must not
 * come by a right to recover: the key that is replaced has to sign it.
 */
export const replacedKey = (
  credential: RecoveryCredential,
  registration: RecoveryRegistrationFacts | null,
): KeyCredential | null => {
  if (credential.kind !== 'key' || registration?.kind !== 'key' || registration.replaces === undefined) return null
  if (registration.replaces === credential.spki) return rotationConfirmed(credential) as KeyCredential
  return registration.replaces === credential.former?.spki ? formerKey(credential) : null
}

export const replacedBy = (
  { spki: formerSpki, publicKey: formerPublicKey }: KeyCredential,
  { spki, publicKey }: Extract<RecoveryRegistrationFacts, { kind: 'key' }>,
  registeredAtMs: number,
): KeyCredential => ({
  ...{ kind: 'key', spki, publicKey, registeredAtMs },
  former: { spki: formerSpki, publicKey: formerPublicKey },
})
