// Clocks of issuers that are apart from ours: what begins in the future is refused by other verifiers, and tokens for an issuer live a minute.

import { durationWords } from '#domain/core/in-words.ts'

/** Vault dates back by 30 s, and step-ca by a minute. */
const worthSayingMs = 30_000

/** Null: it is near enough, or not known. */
export const clockWords = (aheadMs: number | null): string | null =>
  aheadMs === null || Math.abs(aheadMs) < worthSayingMs
    ? null
    : `its clock is ${durationWords(Math.floor(Math.abs(aheadMs) / 1000) * 1000)} ${aheadMs > 0 ? 'ahead of' : 'behind'} this plane's`
