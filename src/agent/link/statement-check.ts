// Whether a challenge is one that this domain's plane made for us just now: signed by a key we pinned, bound to our nonce.

import { verifySignature } from '#pki/keys.ts'
import { parseStatement } from '#wire/core/statement.ts'

export type Expected = {
  /** SubjectPublicKeyInfo, DER, base64, as pinned at enrollment. */
  readonly statementKeys: readonly string[]
  readonly domain: string
  /** The one sent with the question. */
  readonly nonce: string
  /** The node it was asked for; null: for none. */
  readonly node: string | null
}

export type CheckedChallenge = {
  /** The plane's time when it made it, which is after we asked. */
  readonly timeMs: number
  /** To be sent back as it is. */
  readonly challenge: string
}

/** Null: not to be believed, and nothing is learned from it. */
export const verifyChallenge = (text: string, expected: Expected): CheckedChallenge | null => {
  const statement = parseStatement('challenge', text)
  if (statement === null) return null
  const { domain, nonce, node, time_ms } = statement.value
  if (domain !== expected.domain || nonce !== expected.nonce || node !== expected.node) return null
  if (time_ms > latestMs) return null
  const isSigned = expected.statementKeys.some((key) =>
    verifySignature(Buffer.from(key, 'base64'), statement.signed, statement.signature),
  )
  return isSigned ? { timeMs: time_ms, challenge: text } : null
}

/** The end of the year 9999: what comes after cannot be written down as a time. */
const latestMs = 253_402_300_799_999
