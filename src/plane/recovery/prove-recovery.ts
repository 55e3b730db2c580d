// Checks the credential of a recovery or rehearsal against the registered one before anything else of the request is read.
// Anonymous callers do not learn which nodes exist.

import type { KeyBan } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { credentialMatches, type PresentedRecovery } from '#domain/core/recovery-credential.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { verifySignature } from '#pki/keys.ts'
import type { Clock } from '#platform/clock.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { bearerShape, repairTokenShape, type RecoverRequest } from '#wire/recovery/recovery-api.ts'
import { recoveryProofBytes } from '#wire/core/statement.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { checkChallenge, type StatementParts } from '#plane/identity/request-proofs.ts'

export type RecoveryAttempt = {
  readonly purpose: 'recover' | 'rehearse'
  readonly node: NodeId
  readonly credential: RecoverRequest['credential']
  /** Null at a rehearsal. */
  readonly csr: string | null
  readonly counter: string | null
}

export const proveRecovery = (
  clock: Clock,
  statements: StatementParts,
  node: Row<Node> | null,
  attempt: RecoveryAttempt,
): PresentedRecovery | Refusal => {
  const { credential } = attempt
  switch (credential.kind) {
    case 'key':
      return proveKey(clock, statements, node, attempt, credential)
    case 'bearer': {
      const presented = { by: 'bearer', hash: sha256Hex(credential.token) } as const
      const registered = node?.value.recovery?.credential
      const known = registered !== undefined && credentialMatches(registered, presented)
      return bearerShape.test(credential.token) && known ? presented : refuse('RECOVERY_UNKNOWN')
    }
    case 'repair': {
      const hash = sha256Hex(credential.token)
      const known = repairTokenShape.test(credential.token) && node?.value.repair?.hash === hash
      return known ? { by: 'repair', hash } : refuse('REPAIR_TOKEN_INVALID')
    }
  }
}

const proveKey = (
  clock: Clock,
  statements: StatementParts,
  node: Row<Node> | null,
  { purpose, node: id, csr, counter }: RecoveryAttempt,
  { challenge, proof }: Extract<RecoverRequest['credential'], { kind: 'key' }>,
): PresentedRecovery | Refusal => {
  const ours = checkChallenge(clock, statements, challenge)
  if (isRefusal(ours)) return ours
  if (ours.node !== id) return refuse('CHALLENGE_INVALID', 'it was made for another node')
  const csrHash = csr === null ? '-' : sha256Hex(csr)
  const signed = recoveryProofBytes({ purpose, node: id, challenge, csrHash, counter: counter ?? '-' })
  const signature = Buffer.from(proof, 'base64url')
  const registered = node?.value.recovery?.credential
  if (registered?.kind !== 'key') {
    // Checked all the same: the time of a refusal must not show which nodes exist.
    statements.recovery.isOurStatement(signed, signature)
    return refuse('RECOVERY_UNKNOWN')
  }
  const keys = registered.former === undefined ? [registered] : [registered, registered.former]
  const signer = keys.find(({ publicKey }) => verifySignature(Buffer.from(publicKey, 'base64'), signed, signature))
  return signer === undefined ? refuse('RECOVERY_UNKNOWN') : { by: 'key', spki: signer.spki }
}

/** The ban of the recovery key that a caller recovers or rehearses with. */
export const credentialBan = async (
  store: Pick<Store, 'get'>,
  credential: PresentedRecovery,
): Promise<Row<KeyBan> | null> => (credential.by === 'key' ? store.get('key-ban', credential.spki) : null)
