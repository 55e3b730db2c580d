// A new key: made here, or where the host says that such keys are made: in a token, or in Transit.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import { generateKey, type KeyType, type PrivateKey } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import type { Random } from '#platform/random.ts'
import {
  elsewhereOf,
  formatReference,
  formatTransitReference,
  type NewKeyPlace,
} from '#plane/keys/key-reference.ts'
import type { KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'

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

type MakingParts = { readonly elsewhere: KeysElsewhere; readonly random: Pick<Random, 'bytes'> }

/** `place` null: here. Nothing removes a key from elsewhere: what an operator finds there has the role in its name. */
export const newKey = async (
  place: NewKeyPlace | null,
  role: IssuerRow['role'] | 'responder',
  parts: MakingParts,
): Promise<NewKey> => (place === null ? keyHere() : newKeyElsewhere(place, role, 'p256', parts))

export const newKeyElsewhere = async (
  place: NewKeyPlace,
  role: string,
  type: KeyType,
  { elsewhere, random }: MakingParts,
): Promise<NewKey> => {
  const name = `muster-${role}-${random.bytes(8).toString('hex')}`
  const wanted =
    place === 'transit'
      ? formatTransitReference({ key: name, version: null })
      : formatReference({ ...place, label: name, id: null })
  const key = await elsewhere.make(wanted, type)
  return { key, kept: `${key.reference}\n`, custody: custodyOf(key.reference) }
}
