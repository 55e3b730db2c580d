// The key of a root on a machine of its own: in a token, in Transit, or in a file that is not sealed, because no plane is there.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { createFile } from '#platform/folder.ts'
import { isReference } from '#plane/keys/key-reference.ts'
import { isKeyMissing } from '#plane/keys/key-unavailable.ts'
import type { KeyElsewhere, KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { keyHere } from './new-key.ts'

export type RootKey = { readonly kind: 'key'; readonly key: Signer; readonly wasThere: boolean } | Refusal

/** `place`: a reference, or a file. A key that is there already is taken; a file is never overwritten, and never taken. */
export const writeRootKey = async (place: string, elsewhere: KeysElsewhere): Promise<RootKey> => {
  if (isReference(place)) return findOrMake(place, elsewhere)
  const { key, kept } = keyHere()
  if (createFile(place, kept, 0o600) === 'exists')
    return refuse('SETTING_INVALID', `${place} is there already: choose a file that is not`)
  return { kind: 'key', key, wasThere: false }
}

/** A first start, or a ceremony, that was cut off has made it; or a person has. */
export const findOrMake = async (
  reference: string,
  elsewhere: KeysElsewhere,
): Promise<{ readonly kind: 'key'; readonly key: KeyElsewhere; readonly wasThere: boolean }> => {
  const found = await elsewhere.find(reference).catch((error: unknown) => {
    if (isKeyMissing(error)) return null
    throw error
  })
  if (found !== null) return { kind: 'key', key: found, wasThere: true }
  return { kind: 'key', key: await elsewhere.make(reference, 'p256'), wasThere: false }
}

/** Null: the file holds no private key. */
export const openRootKey = async (
  place: string,
  elsewhere: KeysElsewhere,
  read: (file: string) => Promise<string>,
): Promise<Signer | null> => {
  if (isReference(place)) return elsewhere.find(place)
  const text = await read(place)
  try {
    return loadPrivateKey(text)
  } catch {
    return null
  }
}
