import type { KeyInRequest } from '#domain/identity/node-certificate.ts'
import { parseCsr } from '#pki/csr.ts'
import { spkiHash } from '#pki/keys.ts'

/** The public key, proven to be its sender's: all that is ever taken from a certificate request. */
export const keyInRequest = (csr: string): KeyInRequest | { kind: 'malformed'; why: string } => {
  const parsed = parseCsr(csr)
  if (parsed.kind === 'malformed') return parsed
  return { kind: 'key', keyType: parsed.keyType, spki: parsed.spki, spkiHash: spkiHash(parsed.spki) }
}
