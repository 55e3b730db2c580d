// Whether a statement of verifiers is believed: which task signers count on this host, for how long, and what the time is. Facts in,
// verdict out. The functions are pure.

import { sha256Hex } from '#platform/bytes.ts'
import { keyId, keyTypeOfSpki, verifySignature } from '#pki/keys.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { taskStatementLifeMs, type Verifiers } from '#wire/core/task-statements.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

/** How far the clocks of a host and a plane may be apart, as for certificates. */
export const toleranceMs = 5 * 60_000

/** Whom this host is, by its own file. */
export type ThisNode = { readonly domain: string; readonly id: string }

/** What is kept of the newest statement that was accepted. */
export type KeptStatement = Pick<Verifiers, 'verifiers' | 'withdrawn'> & {
  /** SHA-256 of its text. */
  readonly digest: string
  readonly issuedMs: number
  readonly expiresMs: number
}

/** What was learned from statements, and is never given up for an older one. */
export type StatementMemory = {
  readonly number: number
  readonly epoch: number
  /** When the newest one was issued: no time before that is believed. */
  readonly issuedMs: number
  /** When the first one was issued: which tasks were begun before that is not known here. */
  readonly rememberedSinceMs: number
  /** Null: root has pinned other keys since. */
  readonly statement: KeptStatement | null
}

export type TimeFacts = {
  readonly hostMs: number
  /** Proven by a statement with a nonce of this helper's, within the last hour; null: not proven. */
  readonly provenMs: number | null
  /** It is that late at least, by a clock that cannot be set. */
  readonly floorMs: number
}

export type StatementFacts = TimeFacts & {
  readonly text: string
  readonly node: ThisNode
  /** Statement keys: SubjectPublicKeyInfo, DER, base64. */
  readonly pinned: readonly string[]
  /** Null: this helper remembers nothing. */
  readonly memory: StatementMemory | null
  /** Those that were handed out and not used. */
  readonly nonces: readonly string[]
}

type Accepted = {
  readonly kind: 'accepted'
  readonly memory: StatementMemory
  readonly pinned: readonly string[]
  /** The nonce that it used up, and with it the time that it proves; null: it had none. */
  readonly proof: { readonly nonce: string; readonly timeMs: number } | null
}

export type JudgedStatement =
  | Accepted
  /** It is the one that is kept, or an older one that says the same. */
  | { readonly kind: 'known' }

export const judgeStatement = (facts: StatementFacts): JudgedStatement | TaskRefusal => {
  const { text, node, pinned, memory, nonces } = facts
  const parsed = parseStatement('verifiers', text)
  if (parsed === null) return refuseTask('STATEMENT_NOT_SIGNED', 'That is not a statement of verifiers')
  if (memory?.statement?.digest === sha256Hex(text)) return { kind: 'known' }
  const { value, signed, signature } = parsed
  if (!pinned.some((spki) => verifySignature(Buffer.from(spki, 'base64'), signed, signature)))
    return refuseTask(
      'STATEMENT_NOT_SIGNED',
      'The statement is not signed by a statement key that this host has pinned',
    )
  if (value.domain !== node.domain || value.node !== node.id)
    return refuseTask('STATEMENT_OF_ANOTHER', `The statement is for ${value.node} of ${value.domain}`)
  if (!value.verifiers.every(isTaskSigner))
    return refuseTask('STATEMENT_NOT_SIGNED', 'The statement has a verifier that is no Ed25519 key of that id')
  if (value.expires_ms - value.issued_ms > taskStatementLifeMs)
    return refuseTask('LIVES_TOO_LONG', 'The statement lives for more than 24 hours')
  if (value.nonce !== null && !nonces.includes(value.nonce))
    return refuseTask('STATEMENT_OF_ANOTHER', 'The statement answers a nonce that this helper does not wait for')
  // An old statement of an old epoch would do as well: without memory nothing tells the two apart.
  if (value.nonce === null && memory === null)
    return refuseTask('FRESH_STATEMENT_NEEDED', 'This helper remembers no statement, and takes one with its own nonce')
  if (memory !== null && (value.number < memory.number || value.epoch < memory.epoch))
    return refuseTask(
      'STATEMENT_OLDER',
      `The statement has number ${value.number} and epoch ${value.epoch}; ${memory.number} and ${memory.epoch} were seen`,
    )
  if (value.nonce !== null) {
    // Made after the helper asked: it corrects a time that was too late as well as one that was too early.
    const proof = { nonce: value.nonce, timeMs: value.issued_ms }
    return accepted(text, value, { issuedMs: value.issued_ms, memory, proof })
  }
  const isNoNewer = memory !== null && value.number === memory.number && value.epoch === memory.epoch
  if (isNoNewer && memory.statement !== null && value.issued_ms <= memory.issuedMs) return { kind: 'known' }
  const late = timeFault(facts, memory, value)
  if (late !== null) return late
  return accepted(text, value, { issuedMs: Math.max(value.issued_ms, memory?.issuedMs ?? 0), memory, proof: null })
}

const accepted = (
  text: string,
  { number, epoch, verifiers, withdrawn, statement_keys, issued_ms, expires_ms }: Verifiers,
  {
    issuedMs,
    memory,
    proof,
  }: Pick<StatementMemory, 'issuedMs'> & Pick<StatementFacts, 'memory'> & Pick<Accepted, 'proof'>,
): Accepted => ({
  kind: 'accepted',
  memory: {
    number,
    epoch,
    issuedMs,
    rememberedSinceMs: memory?.rememberedSinceMs ?? issued_ms,
    statement: { digest: sha256Hex(text), verifiers, withdrawn, issuedMs: issued_ms, expiresMs: expires_ms },
  },
  pinned: statement_keys,
  proof,
})

const isTaskSigner = ({ key, spki }: Verifiers['verifiers'][number]): boolean => {
  const der = Buffer.from(spki, 'base64')
  return keyTypeOfSpki(der) === 'ed25519' && keyId(der) === key
}

/** The time by which validity is judged; null: the host's clock is in doubt, and nothing else says what time it is. */
export const believedTime = (
  { hostMs, provenMs, floorMs }: TimeFacts,
  memory: StatementMemory | null,
): number | null => {
  if (provenMs !== null) return provenMs
  return hostMs < Math.max(floorMs, memory?.issuedMs ?? 0) - toleranceMs ? null : hostMs
}

const timeFault = (
  time: TimeFacts,
  memory: StatementMemory | null,
  { issued_ms, expires_ms }: { readonly issued_ms: number; readonly expires_ms: number },
): TaskRefusal | null => {
  const nowMs = believedTime(time, memory)
  if (nowMs === null || issued_ms > nowMs + toleranceMs) return clockInDoubt
  if (expires_ms > nowMs) return null
  return time.provenMs === null ? clockInDoubt : statementExpired
}

/** Also for what looks expired: with a wrong clock everything does. */
export const clockInDoubt = refuseTask(
  'FRESH_STATEMENT_NEEDED',
  'By the clock of this host that is expired or not issued yet: a statement with a nonce of the helper has to prove the time',
)

export const statementExpired = refuseTask('STATEMENT_EXPIRED', 'The newest statement of verifiers has expired')
