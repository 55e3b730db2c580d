// The key that signs journal heads. Sealed like the keys of the authority, and never in the database.

import * as path from 'node:path'
import { generateKey, loadPrivateKey, keyId, verifySignature, type PrivateKey } from '#pki/keys.ts'
import { makeFolder, readFileIfAny, replaceFile } from '#platform/files.ts'
import type { SealingKey } from '#plane/issuer/seal.ts'
import type { HeadSigner } from '#plane/store/store.ts'

const sealedName = 'journal/head'

export const openHeadSigner = (dataFolder: string, sealing: SealingKey): HeadSigner => {
  const key = findKey(path.join(dataFolder, 'keys'), sealing)
  return {
    keyId: keyId(key.spki),
    sign: (head) => key.sign(head),
    verify: (head, signature) => verifySignature(key.spki, head, signature),
  }
}

const findKey = (folder: string, sealing: SealingKey): PrivateKey => {
  const file = path.join(folder, 'journal.key')
  const sealed = readFileIfAny(file)
  if (sealed !== null) return loadPrivateKey(sealing.unseal(sealedName, sealed))
  makeFolder(folder, 0o700)
  const key = generateKey('ed25519')
  replaceFile(file, sealing.seal(sealedName, key.pkcs8Pem()), 0o600)
  return key
}
