// What a request brings that is checked before anything is decided on it: the counter, a challenge, and the recovery key it
// registers or proves. Challenge and counter are statements of this domain, and nothing is kept of them: each says when or
// for which node it was made, and its signature or MAC that it is ours.

import type { NodeId } from '#domain/core/node.ts'
import type { PresentedCounter, RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { keyTypeOfSpki, spkiHash, verifySignature } from '#pki/keys.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Clock } from '#platform/clock.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Core } from '#plane/core/core.ts'
import {
  formatStatement,
  parseStatement,
  recoveryProofBytes,
  type Challenge,
  type Counter,
} from '#wire/core/statement.ts'
import type { IdentityProof, RecoveryRegistration } from '#wire/identity/identity-api.ts'

/** What checks and makes the statements of this domain, and checks its counters. */
export type StatementParts = {
  readonly recovery: Pick<RecoveryAuthority, 'signStatement' | 'isOurStatement' | 'isOurCounter'>
  readonly domainName: string
}

/** Long enough for a slow machine to answer, too short for its answer to be worth stealing. */
const challengeLifetimeMs = 60_000
/** Replicas of one plane may differ by so much. */
const aheadMs = 5_000

/** States what time it is, to a caller with a nonce of its own. A recovery key signs it. */
export const issueChallenge = (
  { clock, random }: Pick<Core, 'clock' | 'random'>,
  { recovery, domainName }: StatementParts,
  asked: { readonly nonce: string; readonly node: NodeId | null },
): string => {
  const salt = random.bytes(16).toString('base64url')
  const challenge = { domain: domainName, node: asked.node, nonce: asked.nonce, salt, time_ms: clock.nowMs() }
  return formatStatement('challenge', challenge, (bytes) => recovery.signStatement(bytes))
}

/** Ours, of this domain, and young. For whom it was made is for the caller to compare. */
export const checkChallenge = (
  clock: Clock,
  { recovery, domainName }: StatementParts,
  text: string,
): (Challenge & { readonly kind: 'challenge' }) | Refusal => {
  const parsed = parseStatement('challenge', text)
  if (parsed === null || !recovery.isOurStatement(parsed.signed, parsed.signature)) return refuse('CHALLENGE_INVALID')
  if (parsed.value.domain !== domainName) return refuse('CHALLENGE_INVALID', 'it is of another domain')
  const ageMs = clock.nowMs() - parsed.value.time_ms
  if (ageMs > challengeLifetimeMs || ageMs < -aheadMs) return refuse('CHALLENGE_INVALID', 'it is too old')
  return { ...parsed.value, kind: 'challenge' }
}

export type CheckedRegistration = {
  readonly kind: 'registration'
  readonly facts: RecoveryRegistrationFacts
  /** For whom its challenge was made; null: for a machine that did not know its name yet. */
  readonly node: NodeId | null
}

/** A key is registered only by a caller that proves to hold it, on a challenge of ours and for this very request. */
export const checkRegistration = (
  clock: Clock,
  parts: StatementParts,
  registration: RecoveryRegistration,
  csr: string,
): CheckedRegistration | Refusal => {
  if (registration.kind === 'bearer') return { kind: 'registration', facts: { kind: 'bearer' }, node: null }
  const { challenge, proof } = registration
  const ours = checkChallenge(clock, parts, challenge)
  if (isRefusal(ours)) return ours
  const spki = Buffer.from(registration.public_key, 'base64')
  const publicKey = spki.toString('base64')
  if (keyTypeOfSpki(spki) === null) return refuse('RECOVERY_UNKNOWN', 'the recovery key is of no type we use')
  const node = ours.node ?? '-'
  const signed = recoveryProofBytes({ purpose: 'register', node, challenge, csrHash: sha256Hex(csr), counter: '-' })
  if (!verifySignature(spki, signed, Buffer.from(proof, 'base64url')))
    return refuse('RECOVERY_UNKNOWN', 'the proof of the recovery key is wrong')
  const facts = { kind: 'key', spki: spkiHash(spki), publicKey } as const
  const { replaces } = registration
  if (replaces === undefined) return { kind: 'registration', facts, node: ours.node }
  const replaced = Buffer.from(replaces.public_key, 'base64')
  const over = recoveryProofBytes({ purpose: 'replace', node, challenge, csrHash: sha256Hex(csr), counter: facts.spki })
  if (keyTypeOfSpki(replaced) === null || !verifySignature(replaced, over, Buffer.from(replaces.proof, 'base64url')))
    return refuse('RECOVERY_UNKNOWN', 'the proof of the recovery key that is to be replaced is wrong')
  return { kind: 'registration', facts: { ...facts, replaces: spkiHash(replaced) }, node: ours.node }
}

/** `node`: for whom its challenge was made. `spki`: of the key that has signed. */
export type CheckedProof = {
  readonly kind: 'proof'
  readonly node: NodeId
  readonly spki: string
  readonly counter: PresentedCounter
}

/**
 * Null: it proves nothing, because its signature is wrong, or because its counter was sealed by a key that this domain has lost. Then the
 * request stands as if it had brought none.
 */
export const checkIdentityProof = (
  clock: Clock,
  parts: StatementParts,
  { public_key, challenge, counter: text, proof }: IdentityProof,
  csr: string,
): CheckedProof | null | Refusal => {
  const ours = checkChallenge(clock, parts, challenge)
  if (isRefusal(ours)) return ours
  const { node } = ours
  if (node === null) return refuse('CHALLENGE_INVALID', 'it was made for no node')
  const counter = readRenewalCounter(parts, text, node)
  if (counter === null || isRefusal(counter)) return counter
  const spki = Buffer.from(public_key, 'base64')
  if (keyTypeOfSpki(spki) === null) return null
  const signed = recoveryProofBytes({ purpose: 'prove', node, challenge, csrHash: sha256Hex(csr), counter: text })
  return verifySignature(spki, signed, Buffer.from(proof, 'base64url'))
    ? { kind: 'proof', node, spki: spkiHash(spki), counter }
    : null
}

/**
 * One that another key sealed is like none: keys can be lost. Serials guard a renewal, and the holder of a copy could as well
 * leave its counter out. Where nothing else guards, as in a recovery, `readCounter` is asked.
 */
export const readRenewalCounter = (
  parts: StatementParts,
  text: string | null,
  node: NodeId,
): PresentedCounter | null | Refusal => {
  const parsed = text === null ? null : parseCounter(parts, text)
  if (parsed !== null && !parsed.ours) return null
  return text === null ? null : counterOf(parts, parsed, node)
}

/** Null: none was presented. */
export const readCounter = (
  parts: StatementParts,
  text: string | null,
  node: NodeId,
): PresentedCounter | null | Refusal => (text === null ? null : counterOf(parts, parseCounter(parts, text), node))

type ParsedCounter = { readonly value: Counter; readonly ours: boolean }

const parseCounter = ({ recovery }: StatementParts, text: string): ParsedCounter | null => {
  const parsed = parseStatement('counter', text)
  return parsed === null ? null : { value: parsed.value, ours: recovery.isOurCounter(parsed.signed, parsed.signature) }
}

const counterOf = (
  { domainName }: StatementParts,
  parsed: ParsedCounter | null,
  node: NodeId,
): PresentedCounter | Refusal =>
  parsed === null || !parsed.ours || parsed.value.domain !== domainName || parsed.value.node !== node
    ? refuseField('REQUEST_INVALID', 'counter', 'the counter is not one this node was given')
    : parsed.value
