// The key of a new authority: made here, or in the token that is set for the keys of CAs.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import type { Random } from '#platform/random.ts'
import { formatReference, type TokenPlace } from '#plane/keys/key-reference.ts'
import type { KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'

export type NewKey<S extends Signer = Signer> = {
  readonly key: S
  /** What the custody keeps of it: the key itself, or where it is. */
  readonly kept: string
  readonly custody: Extract<IssuerRow['custody'], 'file' | 'pkcs11'>
}

export const keyHere = (): NewKey<PrivateKey> => {
  const key = generateKey('p256')
  return { key, kept: key.pkcs8Pem(), custody: 'file' }
}

/** `token` null: here. Nothing removes a key from a token: what an operator finds there has the role in its label. */
export const newKey = async (
  token: TokenPlace | null,
  role: IssuerRow['role'],
  { elsewhere, random }: { readonly elsewhere: KeysElsewhere; readonly random: Pick<Random, 'bytes'> },
): Promise<NewKey> => {
  if (token === null) return keyHere()
  const label = `muster-${role}-${random.bytes(8).toString('hex')}`
  const kept = `${formatReference({ ...token, label, id: null })}\n`
  return { key: await elsewhere.make(kept, 'p256'), kept, custody: 'pkcs11' }
}
