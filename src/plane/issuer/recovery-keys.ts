// The two secrets of recovery that are no authority: the key that signs statements, and the secret bearer tokens are
// derived from. Made when they are first needed, sealed like every key, never in the database.

import { createHmac } from 'node:crypto'
import { generateKey, keyId, loadPrivateKey, type PrivateKey } from '#pki/keys.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Random } from '#platform/random.ts'
import type { KeyCustody } from './key-custody.ts'

export type StatementKeys = {
  /** The first signs; statements of the others are still taken. */
  readonly keys: readonly [PrivateKey, ...PrivateKey[]]
  /** The id of the one that had to be made; null: there was one. */
  readonly made: string | null
}

export const findStatementKeys = (custody: KeyCustody): StatementKeys => {
  const [first, ...others] = kept(custody, 'statement').map(loadPrivateKey)
  if (first !== undefined) return { keys: [first, ...others], made: null }
  const key = generateKey('p256')
  const made = keyId(key.spki)
  custody.keep({ role: 'statement', id: made }, key.pkcs8Pem())
  return { keys: [key], made }
}

export type BearerFor = (about: { readonly node: string; readonly counter: number; readonly spki: string }) => string

/** The same question has the same answer for as long as the secret is kept. */
export const findBearerSecret = (custody: KeyCustody, random: Random): BearerFor => {
  const [secret = newBearerSecret(custody, random)] = kept(custody, 'bearer')
  const key = Buffer.from(secret, 'hex')
  return ({ node, counter, spki }) =>
    `recover_${createHmac('sha256', key).update(`muster bearer\n${node}\n${counter}\n${spki}`).digest('base64url')}`
}

const newBearerSecret = (custody: KeyCustody, random: Random): string => {
  const secret = random.bytes(32).toString('hex')
  custody.keep({ role: 'bearer', id: sha256Hex(secret).slice(0, 16) }, secret)
  return secret
}

const kept = (custody: KeyCustody, role: 'statement' | 'bearer'): readonly string[] =>
  custody
    .names()
    .filter((name) => name.role === role)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((name) => custody.find(name) ?? [])
