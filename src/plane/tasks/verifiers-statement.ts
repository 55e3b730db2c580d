// Which task signers a node is to accept, said by the statement key: a task signer never speaks for itself.

import type { NodeId } from '#domain/core/node.ts'
import { isVerifier, type TaskSigners } from '#domain/tasks/signers.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { mostStatementKeys, taskStatementLifeMs } from '#wire/core/task-statements.ts'

export type VerifiersAsked = {
  readonly domain: string
  readonly node: NodeId
  readonly epoch: number
  /** Of the host that asks. */
  readonly nonce: string | null
  readonly nowMs: number
}

export const verifiersStatement = (
  recovery: Pick<RecoveryAuthority, 'statementKeys' | 'signStatement'>,
  { number, signers }: TaskSigners,
  { domain, node, epoch, nonce, nowMs }: VerifiersAsked,
): string =>
  formatStatement(
    'verifiers',
    {
      domain,
      node,
      epoch,
      number,
      verifiers: signers.filter(isVerifier).map(({ key, spki }) => ({ key, spki })),
      withdrawn: signers.flatMap(({ key, state }) => (state.kind === 'withdrawn' ? [key] : [])),
      // The first signs: a host that pins what a statement names must find it there.
      statement_keys: recovery.statementKeys().slice(0, mostStatementKeys),
      issued_ms: nowMs,
      expires_ms: nowMs + taskStatementLifeMs,
      nonce,
    },
    (bytes) => recovery.signStatement(bytes),
  )
