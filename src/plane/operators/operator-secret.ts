import { sha256Hex } from '#platform/bytes.ts'
import type { Random } from '#platform/random.ts'

/** Shown once; only the hash is kept. */
export const newOperatorSecret = (random: Random): { readonly secret: string; readonly hash: string } => {
  const secret = `muster_key_${random.bytes(32).toString('base64url')}`
  return { secret, hash: hashOfSecret(secret) }
}

/** What a key is on record under. */
export const hashOfSecret = (secret: string): string => sha256Hex(secret)
