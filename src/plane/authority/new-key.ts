// A new key: made here, or where the host says that such keys are made: in a token, or in Transit.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { elsewhereOf, type NewKeyPlace } from '#plane/keys/key-reference.ts'
import { makeKeyElsewhere, type KeyMaking } from '#plane/keys/keys-elsewhere.ts'

export type NewKey<S extends Signer = Signer> = {
  readonly key: S
  /** What the custody keeps of it: the key itself, or where it is. */
  readonly kept: string
  readonly custody: Extract<IssuerRow['custody'], 'file' | 'pkcs11' | 'transit'>
}

export const keyHere = (): NewKey<PrivateKey> => {
  const key = generateKey('p256')
  return { key, kept: key.pkcs8Pem(), custody: 'file' }
}

/** Of what a custody keeps. */
export const custodyOf = (kept: string): NewKey['custody'] => elsewhereOf(kept) ?? 'file'

/** `place` null: here. */
export const newKey = async (place: NewKeyPlace | null, role: IssuerRow['role'], parts: KeyMaking): Promise<NewKey> => {
  if (place === null) return keyHere()
  const key = await makeKeyElsewhere(place, role, 'p256', parts)
  return { key, kept: `${key.reference}\n`, custody: custodyOf(key.reference) }
}
