// The key that signs journal heads. Sealed like the keys of the authority, with a key that is not in the database.

import * as path from 'node:path'
import { generateKey, loadPrivateKey, keyId, verifySignature, type PrivateKey } from '#pki/keys.ts'
import { makeFolder, readFileIfAny } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import type { SealingKey } from '#plane/issuer/seal.ts'
import { keyMissing } from './issuer/key-inventory.ts'
import type { HeadSigner, SealedKeys } from '#plane/store/store.ts'

const sealedName = 'journal/head'

/** `whenNone`: where a journal is signed already, another key would be taken for a forger's. */
export const openHeadSigner = (dataFolder: string, sealing: SealingKey, whenNone: 'make' | 'refuse'): HeadSigner =>
  signerWith(findKey(path.join(dataFolder, 'keys'), sealing, whenNone))

/** Of planes that share a store: the key that is there first is the one of all. */
export const openSharedHeadSigner = async (
  keys: SealedKeys,
  sealing: SealingKey,
  whenNone: 'make' | 'refuse',
): Promise<HeadSigner> => {
  const find = async () => (await keys.all()).get(sealedName)
  if ((await find()) === undefined && whenNone === 'refuse') throw keyMissing({ role: 'journal', id: null })
  if ((await find()) === undefined) await keys.add(sealedName, sealing.seal(sealedName, generateKey('p256').pkcs8Pem()))
  const sealed = await find()
  if (sealed === undefined) throw new Error('the key that signs heads was there a moment ago')
  return signerWith(loadPrivateKey(sealing.unseal(sealedName, sealed)))
}

/** Throws where what planes share is sealed with another key, or damaged. */
export const checkSealing = (kept: ReadonlyMap<string, string>, sealing: SealingKey): void => {
  // The journal's first: a wrong sealing key is then named as such, and not as damage.
  const head = kept.get(sealedName)
  if (head !== undefined) sealing.unseal(sealedName, head)
  for (const [name, sealed] of kept) sealing.unseal(name.replace(/^set-aside\//, ''), sealed)
}

const signerWith = (key: PrivateKey): HeadSigner => ({
  keyId: keyId(key.spki),
  sign: (head) => key.sign(head),
  verify: (head, signature) => verifySignature(key.spki, head, signature),
})

/** P-256, which signs twice as fast as Ed25519 here, and a head is signed in every group. Two planes starting on one new folder must not sign with different keys: the file that is there wins. */
const findKey = (folder: string, sealing: SealingKey, whenNone: 'make' | 'refuse'): PrivateKey => {
  const file = path.join(folder, 'journal.key')
  if (readFileIfAny(file) === null) {
    if (whenNone === 'refuse') throw keyMissing({ role: 'journal', id: null })
    makeFolder(folder, 0o700)
    createFile(file, sealing.seal(sealedName, generateKey('p256').pkcs8Pem()), 0o600)
  }
  const sealed = readFileIfAny(file)
  if (sealed === null) throw new Error(`${file} was there a moment ago`)
  return loadPrivateKey(sealing.unseal(sealedName, sealed))
}
