// By what a node says it will recover: a key is registered only by whoever proves to hold it, on a challenge of ours and
// for this very certificate request.

import type { NodeId } from '#domain/core/node.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { keyTypeOfSpki, spkiHash, verifySignature } from '#pki/keys.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { RecoveryRegistration } from '#wire/identity/identity-api.ts'
import { recoveryProofBytes } from '#wire/core/statement.ts'
import { checkChallenge, type ChallengeDeps } from './issue-challenge.ts'

export type CheckedRegistration = {
  readonly kind: 'registration'
  readonly facts: RecoveryRegistrationFacts
  /** For whom its challenge was made; null: for a machine that did not know its name yet. */
  readonly node: NodeId | null
}

export const checkRegistration = (
  deps: ChallengeDeps,
  registration: RecoveryRegistration,
  csr: string,
): CheckedRegistration | Refusal => {
  if (registration.kind === 'bearer') return { kind: 'registration', facts: { kind: 'bearer' }, node: null }
  const { challenge, proof } = registration
  const ours = checkChallenge(deps, challenge)
  if (isRefusal(ours)) return ours
  const spki = Buffer.from(registration.public_key, 'base64')
  const publicKey = spki.toString('base64')
  if (keyTypeOfSpki(spki) === null) return refuse('RECOVERY_UNKNOWN', 'the recovery key is of no type we use')
  const node = ours.node ?? '-'
  const signed = recoveryProofBytes({ purpose: 'register', node, challenge, csrHash: sha256Hex(csr), counter: '-' })
  if (!verifySignature(spki, signed, Buffer.from(proof, 'base64url')))
    return refuse('RECOVERY_UNKNOWN', 'the proof of the recovery key is wrong')
  return { kind: 'registration', facts: { kind: 'key', spki: spkiHash(spki), publicKey }, node: ours.node }
}
