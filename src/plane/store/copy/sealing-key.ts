// The sealing key of a domain that is copied: given by the operator, and never made here.

import * as path from 'node:path'
import { loadPrivateKey } from '#pki/keys.ts'
import { systemRandom } from '#platform/random.ts'
import { pathExists } from '#platform/paths.ts'
import type { SealingKey } from '#plane/keys/seal.ts'
import { credentialName, findSealingKey, type FoundSealingKey } from '#plane/keys/sealing-key.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import { headKeyName } from '#plane/keys/key-files.ts'
import { CopyRefused } from './copy-refusal.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { headSigner } from '#plane/foundation/journal-key.ts'

type Places = Pick<PlaneConfig, 'dataFolder' | 'sealKeyFile' | 'credentialsFolder'>

/** The default place of the sealing key. */
export const ownSealingKeyFile = (dataFolder: string): string => path.join(dataFolder, 'seal.key')

export const givenSealingKey = ({ dataFolder, sealKeyFile, credentialsFolder }: Places): FoundSealingKey => {
  const credential = credentialsFolder === null ? [] : [path.join(credentialsFolder, credentialName)]
  const places = sealKeyFile === null ? [...credential, ownSealingKeyFile(dataFolder)] : [sealKeyFile]
  if (!places.some(pathExists))
    throw new CopyRefused(
      'SEALING_KEY_MISSING',
      `there is no sealing key${sealKeyFile === null ? ` in ${dataFolder}` : ` at ${sealKeyFile}`}`,
      'Give the one the domain has: --seal-key FILE',
    )
  return findSealingKey({ dataFolder, keyFile: sealKeyFile, credentialsFolder }, systemRandom)
}

/** Opens every key, to see that it can be done, and returns the one that signs heads of the journal. */
export const openSealedKeys = (sealing: SealingKey, keys: ReadonlyMap<string, string>): HeadSigner => {
  let head: string | null = null
  for (const [name, sealed] of keys) {
    const text = unsealed(sealing, name, sealed)
    if (name === headKeyName) head = text
  }
  if (head === null)
    throw new CopyRefused(
      'KEY_MISSING',
      'the key that signs heads of the journal is missing',
      'Restore the last good backup',
    )
  return headSigner(loadPrivateKey(head), sealing, keys)
}

const unsealed = (sealing: SealingKey, name: string, sealed: string): string => {
  try {
    return sealing.unseal(name, sealed)
  } catch (error) {
    throw new CopyRefused(
      'SEALING_KEY_WRONG',
      `the sealing key does not open the keys of this domain: ${error instanceof Error ? error.message : String(error)}`,
      'Give the one they were sealed with: --seal-key FILE',
    )
  }
}
