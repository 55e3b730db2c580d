// Where the sealing key comes from. A key beside the data it seals protects nothing (ruling 1): such a key works, and is
// reported as unprotected.

import * as path from 'node:path'
import { mayBeReadBy, othersMayRead, readFileIfAny } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import type { Random } from '#platform/random.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { SealRefused, sealingKeyBytes, sealingKeyOf, type SealingKey } from './seal.ts'

export type SealingKeyPlaces = {
  readonly dataFolder: string
  /** `--seal-key FILE`, or null. */
  readonly keyFile: string | null
  /** systemd's $CREDENTIALS_DIRECTORY, or null. */
  readonly credentialsFolder: string | null
}

/** `beside`: it is stored next to the keys it seals, so a copy of the folder has both. `group`: its group can read it. */
export type SealingProtection = 'protected' | 'group' | 'beside'

export type FoundSealingKey = {
  readonly key: SealingKey
  readonly file: string
  readonly protection: SealingProtection
}

export const credentialName = 'muster-seal-key'

/**
 * A file that was named has to be there; only where none was is one made, in the data folder. `whenNone`: where something
 * is sealed already, a new key would open none of it.
 */
export const findSealingKey = (
  places: SealingKeyPlaces,
  random: Random,
  whenNone: 'make' | 'refuse' = 'make',
): FoundSealingKey => {
  const { dataFolder, keyFile, credentialsFolder } = places
  if (keyFile !== null) {
    const text = readFileIfAny(keyFile)
    if (text === null) throw new SealRefused(`there is no sealing key at ${keyFile}`)
    const protection = isInside(dataFolder, keyFile) ? 'beside' : othersMayRead(keyFile) ? 'group' : 'protected'
    return { key: parse(text, keyFile, random), file: keyFile, protection }
  }
  if (credentialsFolder !== null) {
    const file = path.join(credentialsFolder, credentialName)
    const text = readFileIfAny(file)
    if (text !== null) return { key: parse(text, file, random), file, protection: 'protected' }
  }
  const file = path.join(dataFolder, 'seal.key')
  if (readFileIfAny(file) === null && whenNone === 'refuse') {
    throw new SealRefused('the keys of this domain are sealed, and the key that opens them was not given')
  }
  if (readFileIfAny(file) === null) createFile(file, random.bytes(sealingKeyBytes).toString('hex') + '\n', 0o600)
  const text = readFileIfAny(file)
  if (text === null) throw new Error(`${file} was there a moment ago`)
  return { key: parse(text, file, random), file, protection: 'beside' }
}

const parse = (text: string, file: string, random: Random): SealingKey => {
  const digits = text.trim()
  if (!/^[0-9a-f]{64}$/i.test(digits)) {
    throw new SealRefused(`${file} is not a sealing key: that is 64 hexadecimal digits (openssl rand -hex 32)`)
  }
  return sealingKeyOf(Buffer.from(digits, 'hex'), random)
}

const isInside = (folder: string, file: string): boolean => {
  const way = path.relative(path.resolve(folder), path.resolve(file))
  return way !== '..' && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way)
}

/**
 * As ssh does with its keys. The generated key is of no use to a group either; one that was named may belong to root and a
 * group of the plane's user (0640), which is reported as unprotected. systemd guards its credentials itself.
 */
export const refuseExposed = (
  { file }: Pick<FoundSealingKey, 'file'>,
  dataFolder: string,
  credentialsFolder: string | null,
): void => {
  if (credentialsFolder !== null && file === path.join(credentialsFolder, credentialName)) return
  const isOwn = path.resolve(file) === path.resolve(dataFolder, 'seal.key')
  const exposedTo = mayBeReadBy(file, 'everybody')
    ? 'everybody'
    : isOwn && mayBeReadBy(file, 'group')
      ? 'its group'
      : null
  if (exposedTo === null) return
  throw new StoreRefused(
    'SEALING_KEY_EXPOSED',
    `the sealing key ${file} can be read by ${exposedTo} on this machine`,
    `chmod 600 ${file}; if others could read it for long, they may have the keys of this domain: docs/TROUBLESHOOTING.md, A sealing key that others could read`,
  )
}
