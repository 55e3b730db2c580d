// The two secrets of recovery that are no authority: the key that signs statements, and the secret bearer tokens are
// derived from. Made when they are first needed, sealed like every key.

import { createHmac } from 'node:crypto'
import { generateKey, keyId, loadPrivateKey, type PrivateKey } from '#pki/keys.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Random } from '#platform/random.ts'
import { keyMissing } from '#plane/keys/key-inventory.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'

/**
 * The id of the statement key that had to be made; null: there was one. `mayMake`: throws where one is gone that has been
 * there, unless a person asked for another.
 */
export const makeMissingSecrets = async (
  custody: KeyCustody,
  random: Random,
  mayMake: (role: 'statement' | 'bearer') => boolean,
): Promise<string | null> => {
  for (const role of ['bearer', 'statement'] as const) {
    if (kept(custody, role).length === 0 && !mayMake(role)) throw keyMissing({ role, id: null })
  }
  if (kept(custody, 'bearer').length === 0) {
    const secret = random.bytes(32).toString('hex')
    await custody.keep({ role: 'bearer', id: sha256Hex(secret).slice(0, 16) }, secret)
  }
  if (kept(custody, 'statement').length > 0) return null
  const key = generateKey('p256')
  const made = keyId(key.spki)
  await custody.keep({ role: 'statement', id: made }, key.pkcs8Pem())
  return made
}

/** The first signs; statements of the others are still taken. */
export type StatementKeys = readonly [PrivateKey, ...PrivateKey[]]

export const statementKeysIn = (custody: KeyCustody): StatementKeys => {
  const [first, ...others] = kept(custody, 'statement').map(loadPrivateKey)
  if (first === undefined) throw new Error('there is no key that signs statements')
  return [first, ...others]
}

export type BearerFor = (about: { readonly node: string; readonly counter: number; readonly spki: string }) => string

/** The same question has the same answer for as long as the secret is kept. */
export const bearerIn = (custody: KeyCustody): BearerFor => {
  const [secret] = kept(custody, 'bearer')
  if (secret === undefined) throw new Error('there is no secret that bearer tokens are derived from')
  const key = Buffer.from(secret, 'hex')
  return ({ node, counter, spki }) =>
    `recover_${createHmac('sha256', key).update(`muster bearer\n${node}\n${counter}\n${spki}`).digest('base64url')}`
}

const kept = (custody: KeyCustody, role: 'statement' | 'bearer'): readonly string[] =>
  custody
    .names()
    .filter((name) => name.role === role)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((name) => custody.find(name) ?? [])
