// Private keys at rest are sealed: AES-256-GCM, bound to the name of the file they lie in, so that two sealed files
// cannot be swapped for one another. A reference to a key in a token is not, where its public half is on record elsewhere: which key it leads to is
// seen by its signatures.

import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import type { Random } from '#platform/random.ts'
import { isReference } from './key-reference.ts'

export type SealingKey = {
  /** Identifies a key without revealing anything of it. */
  readonly id: string
  /** Where a key is that is not here stays as it is, for the roles whose public keys are on record: it is no secret, and people may correct it. */
  seal(name: string, text: string): string
  /** Throws, naming the cause, when this is not what was sealed under that name with this key. */
  unseal(name: string, sealed: string): string
  /** A message authentication code, base64url, under a key derived for this purpose alone. */
  mac(purpose: string, text: string): string
}

/** The sealing key is not the one that is needed here, and trying again changes nothing. */
export class SealRefused extends Error {
  readonly code = 'SEALING_KEY_REFUSED'
  /** What the operator does about it. */
  readonly next = 'Give it the sealing key the domain was made with: --seal-key FILE, or the credential muster-seal-key'

  constructor(message: string) {
    super(message)
    this.name = 'SealRefused'
  }
}

/** The content is not what was sealed: a bit has changed, it was truncated, or it is another file. */
class KeyDamaged extends Error {
  readonly code = 'KEY_DAMAGED'
  readonly next: string

  constructor(name: string, why: string, cause?: unknown) {
    super(`${name} ${why}`, { cause })
    this.name = 'KeyDamaged'
    const file = name === 'journal/head' ? 'journal.key' : `${name.replace('/', '.')}.key`
    this.next = `Restore keys/${file} from a backup of the data folder (with PostgreSQL: the row ${name} of the table sealed_key), then start again. Without a backup: move it out of keys/ and start; what that key is for decides whether it is made anew (docs/TROUBLESHOOTING.md, A plane that does not start)`
  }
}

/** Names the format, so that a later one can be recognised. */
const format = 'muster-sealed-1'
const shape = /^muster-sealed-1:([0-9a-f]{16}):([A-Za-z0-9_-]{16}):([A-Za-z0-9_-]{22}):([A-Za-z0-9_-]+)\n?$/

/**
 * Of authorities and task signers: with another key nothing verifies. A request says itself which key it is for, and a secret has no public half:
 * who can write here could choose both.
 */
const openRoles = ['root', 'domain-ca', 'issuing', 'retired', 'task-signer']

const staysOpen = (name: string, text: string): boolean =>
  isReference(text) && !text.trimEnd().includes('\n') && openRoles.includes(name.slice(0, name.indexOf('/')))

export const sealingKeyBytes = 32

export const sealingKeyOf = (secret: Uint8Array, random: Random): SealingKey => {
  if (secret.length !== sealingKeyBytes) throw new Error(`a sealing key has ${sealingKeyBytes} bytes`)
  const derive = (purpose: string): Buffer => createHmac('sha256', secret).update(`muster sealing ${purpose}`).digest()
  const cipherKey = derive('cipher')
  const id = derive('key id').toString('hex').slice(0, 16)
  const context = (name: string): Buffer => Buffer.from(`${format}\0${id}\0${name}`)
  const macKeys = new Map<string, Buffer>()
  const macKeyFor = (purpose: string): Buffer => {
    const known = macKeys.get(purpose) ?? derive(`mac: ${purpose}`)
    macKeys.set(purpose, known)
    return known
  }

  return {
    id,
    seal(name, text) {
      if (staysOpen(name, text)) return text
      const nonce = random.bytes(12)
      const cipher = createCipheriv('aes-256-gcm', cipherKey, nonce)
      cipher.setAAD(context(name))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `${format}:${id}:${[nonce, cipher.getAuthTag(), body].map(base64url).join(':')}\n`
    },
    unseal(name, sealed) {
      if (staysOpen(name, sealed)) return sealed
      const parts = shape.exec(sealed)
      if (parts === null) throw new KeyDamaged(name, 'is not a sealed file of a format this version knows')
      const [, sealedWith, nonce, tag, body] = parts as unknown as [string, string, string, string, string]
      if (sealedWith !== id) {
        throw new SealRefused(`${name} was sealed with another key (${sealedWith}) than the one given (${id})`)
      }
      const decipher = createDecipheriv('aes-256-gcm', cipherKey, Buffer.from(nonce, 'base64url'), {
        authTagLength: 16,
      })
      decipher.setAAD(context(name))
      decipher.setAuthTag(Buffer.from(tag, 'base64url'))
      try {
        return decipher.update(Buffer.from(body, 'base64url'), undefined, 'utf8') + decipher.final('utf8')
      } catch (cause) {
        throw new KeyDamaged(name, 'has been altered, or is another file put in its place', cause)
      }
    },
    mac: (purpose, text) => createHmac('sha256', macKeyFor(purpose)).update(text).digest('base64url'),
  }
}

const base64url = (bytes: Buffer): string => bytes.toString('base64url')
