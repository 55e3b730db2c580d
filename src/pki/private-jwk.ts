// The private key of a provisioner, as an operator hands it over: a JSON Web Key (RFC 7517), or PKCS#8 in PEM.

import { createPrivateKey, createPublicKey, hash, type JsonWebKeyInput } from 'node:crypto'
import { loadPrivateKey, type PrivateKey } from './keys.ts'

export type ProvisionerKey = {
  readonly kind: 'key'
  readonly key: PrivateKey
  /** How the server knows it: what the text says, else its thumbprint (RFC 7638). */
  readonly keyId: string
}

export type NoKey = { readonly kind: 'malformed'; readonly why: string }

const noKey = (why: string): NoKey => ({ kind: 'malformed', why })

const longestText = 8192

/** The reasons repeat nothing of the text. */
export const readProvisionerKey = (text: string): ProvisionerKey | NoKey => {
  const trimmed = text.trim()
  if (trimmed.length > longestText) return noKey(`more than ${longestText} characters`)
  if (trimmed.startsWith('-----BEGIN')) return fromPem(trimmed)
  // Five parts with a header in JSON: an encrypted key, as `step` writes it.
  if (/^eyJ[\w-]+(\.[\w-]*){4}$/.test(trimmed)) return encrypted
  let parsed: unknown
  try {
    parsed = JSON.parse(trimmed)
  } catch {
    return noKey('neither a JSON Web Key nor PEM')
  }
  if (typeof parsed !== 'object' || parsed === null) return noKey('neither a JSON Web Key nor PEM')
  if ('ciphertext' in parsed) return encrypted
  if (!('d' in parsed)) return noKey('only the public half of a key; the private one is needed')
  return fromJwk(parsed)
}

const encrypted = noKey('it is encrypted; `step crypto jwe decrypt` with its password gives the key itself')

const fromPem = (text: string): ProvisionerKey | NoKey => {
  try {
    const key = loadPrivateKey(`${text}\n`)
    return { kind: 'key', key, keyId: thumbprint(publicJwk(key.spki)) }
  } catch (error) {
    return noKey(error instanceof Error ? error.message : 'not a private key')
  }
}

const fromJwk = ({ kty, crv, x, y, d, kid }: Readonly<Record<string, unknown>>): ProvisionerKey | NoKey => {
  if (kty === 'RSA') return noKey('an RSA key; make the provisioner with one of P-256, P-384 or Ed25519')
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) return noKey('its kid is not a text')
  try {
    const jwk = { kty, crv, x, d, ...(kty === 'EC' ? { y } : {}) } as JsonWebKeyInput['key']
    const pem = createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' })
    const key = loadPrivateKey(pem.toString())
    return { kind: 'key', key, keyId: kid ?? thumbprint(publicJwk(key.spki)) }
  } catch {
    return noKey('not a private key of P-256, P-384 or Ed25519')
  }
}

export type PublicJwk = Readonly<Partial<Record<'kty' | 'crv' | 'x' | 'y', string>>>

/** The members that make the key, and no others. */
export const publicJwk = (spki: Uint8Array): PublicJwk =>
  createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }).export({ format: 'jwk' })

const thumbprint = (jwk: PublicJwk): string => {
  const members = Object.entries(jwk).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return hash('sha256', JSON.stringify(Object.fromEntries(members)), 'base64url')
}
