// A new key, and the request to have it certified. Keys are never reused across requests.

import type { KeyType } from '#domain/core/profile.ts'
import { keyTypes } from '#domain/core/profile.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { MadeFor } from './made-for.ts'
import type { KeyRequest, RecoveryKey } from './credentials.ts'

export const newKeyRequest = (
  purpose: KeyRequest['purpose'],
  keyType: KeyType,
  name: string,
  nowMs: number,
  recoveryKey: RecoveryKey | null,
  madeFor: MadeFor | null = null,
): KeyRequest => {
  const key = generateKey(keyType)
  return { purpose, keyType, keyPem: key.pkcs8Pem(), csrPem: makeCsr(key, name), sinceMs: nowMs, recoveryKey, madeFor }
}

/** Always P-256: the key types of the profile are for certificates, and this key never gets one. */
export const newRecoveryKey = (): RecoveryKey => ({ keyType: 'p256', keyPem: generateKey('p256').pkcs8Pem() })

/** The type asked for, unless the profile came to exclude it. */
export const keyTypeFor = (wanted: KeyType, allowed: readonly string[]): KeyType =>
  allowed.includes(wanted) ? wanted : (keyTypes.find((type) => allowed.includes(type)) ?? wanted)
