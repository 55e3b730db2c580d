// Digests of what may hold a secret: the environment of a service, a file that not everybody may read. They end up where every user
// of the machine can read them (the description of a unit, the name of a folder), and from a plain digest a short secret can be
// guessed. So they are keyed, by random bytes that only the agent's user can read.

import { createHash, createHmac } from 'node:crypto'
import * as path from 'node:path'
import { makeFolder, readFileIfAny, replaceFile } from '#platform/files.ts'
import type { Random } from '#platform/random.ts'

/** Of any value that JSON has: 16 hex digits. */
export type Digest = (value: unknown) => string

/** Of what is no secret. */
export const plainDigest: Digest = (value) =>
  shortened(createHash('sha256').update(JSON.stringify(value)).digest('hex'))

/** The key is made with the first digest. One that cannot be kept holds until the agent ends: the next restarts such services once. */
export const openSecretDigest = (stateFolder: string, random: Random): Digest => {
  const file = path.join(stateFolder, 'digest-key')
  let key: Buffer | null = null
  return (value) => {
    key ??= keyIn(file, random)
    return shortened(createHmac('sha256', key).update(JSON.stringify(value)).digest('hex'))
  }
}

const shortened = (hex: string): string => hex.slice(0, 16)

const keyBytes = 32

const keyIn = (file: string, random: Random): Buffer => {
  try {
    const kept = Buffer.from((readFileIfAny(file) ?? '').trim(), 'hex')
    return kept.length === keyBytes ? kept : newKey(file, random)
  } catch {
    // The disk may give it to the next agent, which then restarts nothing but what this one has started.
    return random.bytes(keyBytes)
  }
}

const newKey = (file: string, random: Random): Buffer => {
  const key = random.bytes(keyBytes)
  try {
    makeFolder(path.dirname(file), 0o700)
    replaceFile(file, `${key.toString('hex')}\n`, 0o600)
  } catch {
    // As above.
  }
  return key
}
