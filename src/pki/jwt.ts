// JSON Web Tokens of service accounts (RFC 7515, RFC 7519), and the key sets that verify them (RFC 7517). Two algorithms, and the key says
// which of them it is for: a token that names another is refused, so that neither `none` nor a public key used as a secret gets through.

import { createPublicKey, verify, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { sha256Hex } from '#platform/bytes.ts'

export const jwtAlgorithms = ['RS256', 'ES256'] as const
export type JwtAlgorithm = (typeof jwtAlgorithms)[number]

/** Longer ones are refused before they are taken apart. Tokens of Kubernetes have about 1,200 characters. */
export const longestJwt = 8192

export type ParsedJwt = {
  readonly kind: 'jwt'
  readonly algorithm: JwtAlgorithm
  readonly keyId: string
  readonly claims: Readonly<Record<string, unknown>>
  /** SHA-256 of what is signed, hex. Without the signature: of ES256 there are two for one token. */
  readonly hash: string
  readonly signed: Uint8Array
  readonly signature: Uint8Array
}

export type NoJwt = { readonly kind: 'malformed'; readonly why: string }

const noJwt = (why: string): NoJwt => ({ kind: 'malformed', why })

/** Nothing of it is proven: `verifyJwt` does that. */
export const parseJwt = (text: string): ParsedJwt | NoJwt => {
  if (text.length > longestJwt) return noJwt(`more than ${longestJwt} characters`)
  const parts = text.split('.')
  const [head, body, tail] = parts
  if (parts.length !== 3 || head === undefined || body === undefined || tail === undefined)
    return noJwt('not three parts, joined by dots')
  const header = objectIn(head)
  const claims = objectIn(body)
  const signature = bytesIn(tail)
  if (header === null || claims === null || signature === null) return noJwt('not base64url of JSON')
  const algorithm = jwtAlgorithms.find((one) => one === header['alg'])
  if (algorithm === undefined) return noJwt('its algorithm is neither RS256 nor ES256')
  // What is critical has to be understood, and there is nothing that we understand (RFC 7515, 4.1.11).
  if (header['crit'] !== undefined) return noJwt('it has critical headers')
  const keyId = header['kid']
  if (typeof keyId !== 'string' || keyId === '' || keyId.length > longestKeyId) return noJwt('it names no key (kid)')
  const signed = Buffer.from(`${head}.${body}`, 'ascii')
  return { kind: 'jwt', algorithm, keyId, claims, hash: sha256Hex(signed), signed, signature }
}

const longestKeyId = 256
const base64url = /^[A-Za-z0-9_-]+$/

const bytesIn = (part: string): Buffer | null => (base64url.test(part) ? Buffer.from(part, 'base64url') : null)

const objectIn = (part: string): Record<string, unknown> | null => {
  const bytes = bytesIn(part)
  if (bytes === null) return null
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
  } catch {
    return null
  }
}

/** A public key of an issuer of tokens, and the one algorithm that it verifies. */
export type JwtKey = { readonly keyId: string; readonly algorithm: JwtAlgorithm; readonly key: KeyObject }

/** Bytes of r and s of an ES256 signature. */
const es256Bytes = 64

export const verifyJwt = ({ algorithm, keyId, signed, signature }: ParsedJwt, key: JwtKey): boolean => {
  if (key.algorithm !== algorithm || key.keyId !== keyId) return false
  if (algorithm === 'RS256') return verify('sha256', signed, key.key, signature)
  return (
    signature.length === es256Bytes && verify('sha256', signed, { key: key.key, dsaEncoding: 'ieee-p1363' }, signature)
  )
}

/** Also the bound on how many keys are tried. */
const mostKeys = 64
const shortestRsaBits = 2048

/**
 * The keys of a set that can verify tokens. Others in it, such as those for encryption or of another curve, are left out; a secret (`oct`)
 * is never a key here. Two keys of one id are a mistake of the issuer, and neither is taken. An issuer may have withdrawn all of them.
 */
export const parseJwks = (text: string): { readonly kind: 'keys'; readonly keys: readonly JwtKey[] } | NoJwt => {
  let listed: unknown
  try {
    listed = (JSON.parse(text) as { keys?: unknown } | null)?.keys
  } catch {
    return noJwt('not JSON')
  }
  if (!Array.isArray(listed)) return noJwt('it has no list "keys"')
  if (listed.length > mostKeys) return noJwt(`more than ${mostKeys} keys`)
  const found = listed.flatMap((one: unknown) => keyFrom(one) ?? [])
  const keys = found.filter(({ keyId }) => found.filter((other) => other.keyId === keyId).length === 1)
  return { kind: 'keys', keys }
}

const keyFrom = (one: unknown): JwtKey | null => {
  if (typeof one !== 'object' || one === null) return null
  const { kid, kty, crv, alg, use, n, e, x, y } = one as Readonly<Record<string, unknown>>
  const algorithm = kty === 'RSA' ? 'RS256' : kty === 'EC' && crv === 'P-256' ? 'ES256' : null
  if (algorithm === null || typeof kid !== 'string' || kid === '' || kid.length > longestKeyId) return null
  if ((alg !== undefined && alg !== algorithm) || (use !== undefined && use !== 'sig')) return null
  // Only the public parts: a set that holds a private key by mistake is not to be kept in memory.
  const jwk = (algorithm === 'RS256' ? { kty, n, e } : { kty, crv, x, y }) as JsonWebKeyInput['key']
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const bits = key.asymmetricKeyDetails?.modulusLength ?? shortestRsaBits
    return bits < shortestRsaBits ? null : { keyId: kid, algorithm, key }
  } catch {
    return null
  }
}
