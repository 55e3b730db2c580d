// A new key, and the request to have it certified. Keys are never reused across requests.

import type { KeyType } from '#domain/core/profile.ts'
import { keyTypes } from '#domain/core/profile.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { MadeFor } from './made-for.ts'
import type { KeyRequest, RecoveryKey } from './credentials.ts'

export const newKeyRequest = (
  purpose: KeyRequest['purpose'],
  { keyType, insteadOf }: KeyChoice,
  name: string,
  nowMs: number,
  recoveryKey: RecoveryKey | null,
  madeFor: MadeFor | null = null,
): KeyRequest => {
  const key = generateKey(keyType)
  return {
    ...{ purpose, keyType, insteadOf, keyPem: key.pkcs8Pem(), csrPem: makeCsr(key, name) },
    ...{ sinceMs: nowMs, recoveryKey, madeFor },
  }
}

/** Which type of key is made, and instead of which. */
export type KeyChoice = Pick<KeyRequest, 'keyType' | 'insteadOf'>

/** `allowed`: as the plane has said with a refusal; null: nothing. */
export const keyChoice = (wanted: KeyType, allowed: readonly string[] | null): KeyChoice => {
  const keyType = allowed === null ? wanted : keyTypeFor(wanted, allowed)
  return { keyType, insteadOf: keyType === wanted ? null : wanted }
}

/** Always P-256: the key types of the profile are for certificates, and this key never gets one. */
export const newRecoveryKey = (): RecoveryKey => ({ keyType: 'p256', keyPem: generateKey('p256').pkcs8Pem() })

/** The type asked for, unless the profile came to exclude it. */
export const keyTypeFor = (wanted: KeyType, allowed: readonly string[]): KeyType =>
  allowed.includes(wanted) ? wanted : (keyTypes.find((type) => allowed.includes(type)) ?? wanted)
