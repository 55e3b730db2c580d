// The key that signs journal heads. Sealed like the keys of the authority, with a key that is not in the database. Its public half
// (`journal/KEY_ID`) stays when the key is lost and replaced: heads it has signed are still verified. The public half is sealed
// too, so that a user who can write the database cannot name another signer.

import * as path from 'node:path'
import { generateKey, loadPrivateKey, keyId, verifySignature, type PrivateKey } from '#pki/keys.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { errno, makeFolder, readFileIfAny } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import type { HeadSigner, SealedKeys } from '#plane/store/contract/store.ts'
import { headKeyName as sealedName, keysInFolder, writeKeyFiles } from '#plane/keys/key-files.ts'
import { keyMissing } from '#plane/keys/key-inventory.ts'

const signerShape = /^journal\/[0-9a-f]+$/

/** What the public half of the key with this id is sealed under. */
export const signerName = (id: string): string => `journal/${id}`

const publicHalf = (sealing: SealingKey, { spki }: PrivateKey): readonly [string, string] => {
  const name = signerName(keyId(spki))
  return [name, sealing.seal(name, toPem('PUBLIC KEY', spki))]
}

/** Signs with the one key, and verifies what any that ever signed here has signed. */
export const headSigner = (key: PrivateKey, sealing: SealingKey, kept: ReadonlyMap<string, string>): HeadSigner => {
  const former = [...kept]
    .filter(([name]) => signerShape.test(name) && name !== signerName(keyId(key.spki)))
    .flatMap(([name, sealed]) => fromPem('PUBLIC KEY', sealing.unseal(name, sealed)) ?? [])
  const signers = [key.spki, ...former]
  return {
    keyId: keyId(key.spki),
    sign: (head) => key.sign(head),
    verify: (head, signature) => signers.some((spki) => verifySignature(spki, head, signature)),
  }
}

/** `whenNone`: where a journal is signed already, another key would be taken for a forger's. */
export const openHeadSigner = (dataFolder: string, sealing: SealingKey, whenNone: 'make' | 'refuse'): HeadSigner =>
  headSigner(findKey(dataFolder, sealing, whenNone), sealing, keysInFolder(dataFolder))

/** Of replicas that share a store: the key that is there first is the one of all. */
export const openSharedHeadSigner = async (
  keys: SealedKeys,
  sealing: SealingKey,
  whenNone: 'make' | 'refuse',
): Promise<HeadSigner> => {
  const find = async () => (await keys.all()).get(sealedName)
  if ((await find()) === undefined && whenNone === 'refuse') throw keyMissing({ role: 'journal', id: null })
  if ((await find()) === undefined) await keys.add(sealedName, sealing.seal(sealedName, generateKey('p256').pkcs8Pem()))
  const kept = await keys.all()
  const sealed = kept.get(sealedName)
  if (sealed === undefined) throw new Error('the key that signs heads was there a moment ago')
  const key = loadPrivateKey(sealing.unseal(sealedName, sealed))
  const half = publicHalf(sealing, key)
  if (!kept.has(half[0])) await keys.add(...half)
  return headSigner(key, sealing, kept)
}

/** Throws where what replicas share is sealed with another key, or damaged. */
export const checkSealing = (kept: ReadonlyMap<string, string>, sealing: SealingKey): void => {
  // The journal's first: a wrong sealing key is then named as such, and not as damage.
  const head = kept.get(sealedName)
  if (head !== undefined) sealing.unseal(sealedName, head)
  for (const [name, sealed] of kept) sealing.unseal(name.replace(/^set-aside\//, ''), sealed)
}

/**
 * P-256, which signs twice as fast as Ed25519 here, and a head is signed in every group. Two planes starting on one new folder
 * must not sign with different keys: the file that is there wins.
 */
const findKey = (dataFolder: string, sealing: SealingKey, whenNone: 'make' | 'refuse'): PrivateKey => {
  const folder = path.join(dataFolder, 'keys')
  const file = path.join(folder, 'journal.key')
  if (readFileIfAny(file) === null) {
    if (whenNone === 'refuse') throw keyMissing({ role: 'journal', id: null })
    makeFolder(folder, 0o700)
    const made = generateKey('p256')
    // The public half first: by it a start distinguishes a key that was made here from one of another domain.
    writeKeyFiles(dataFolder, new Map([publicHalf(sealing, made)]))
    createFile(file, sealing.seal(sealedName, made.pkcs8Pem()), 0o600)
  }
  const sealed = readFileIfAny(file)
  if (sealed === null) throw new Error(`${file} was there a moment ago`)
  const key = loadPrivateKey(sealing.unseal(sealedName, sealed))
  keepPublicHalf(dataFolder, sealing, key)
  return key
}

/** A folder of release 0.2.0 has none. Without room for it the plane starts all the same, and tries at its next start. */
const keepPublicHalf = (dataFolder: string, sealing: SealingKey, key: PrivateKey): void => {
  const half = publicHalf(sealing, key)
  if (keysInFolder(dataFolder).has(half[0])) return
  try {
    writeKeyFiles(dataFolder, new Map([half]))
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(errno(error) ?? '')) throw error
  }
}
