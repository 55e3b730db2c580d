// Task signers: for nodes, which of them to accept; for operators, to list and to replace them.

import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { TaskSigners } from '#domain/tasks/signers.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Core } from '#plane/core/core.ts'
import { answer, attributionOf, serve, type Route } from '#plane/http/route.ts'
import { signerApi, signerListView } from '#wire/tasks/signer-api.ts'
import { taskVerifiersApi } from '#wire/tasks/task-verifiers-api.ts'
import type { Changed, TaskSignersHere } from './task-signers.ts'
import { verifiersStatement } from './verifiers-statement.ts'

export type VerifierRouteParts = {
  readonly taskSigners: Pick<TaskSignersHere, 'stored'>
  readonly recovery: Pick<RecoveryAuthority, 'statementKeys' | 'signStatement'>
  readonly domainName: string
}

export const taskVerifierRoutes = (
  { clock }: Pick<Core, 'clock'>,
  { taskSigners, recovery, domainName }: VerifierRouteParts,
): readonly Route[] =>
  serve(taskVerifiersApi, {
    verifiers: async ({ principal, body }) => {
      // From the store, not from memory: a replica that has not received a withdrawal would vouch for the signer for another day.
      const row = await taskSigners.stored()
      if (row === null || row.value.forged) return refuse('SIGNERS_NOT_READY')
      const { id: node, epoch } = principal
      const asked = { domain: domainName, node, epoch, nonce: body.nonce, nowMs: clock.nowMs() }
      return answer({ statement: verifiersStatement(recovery, row.value, asked) })
    },
  })

export const operatorSignerRoutes = (
  { store }: Pick<Core, 'store'>,
  taskSigners: TaskSignersHere,
): readonly Route[] => {
  const shown = async (signers: TaskSigners) =>
    answer(signerListView(signers, await store.countTaskVerifiers(), taskSigners.warnings()))
  const after = (outcome: Changed | Refusal) => (isRefusal(outcome) ? outcome : shown(outcome.signers))
  return serve(signerApi, {
    list: async () => {
      const row = await taskSigners.stored()
      return row === null ? refuse('SIGNERS_NOT_READY') : shown(row.value)
    },
    rotate: async (call) => after(await taskSigners.rotate(call.body.how ?? 'usual', attributionOf(call))),
    withdraw: async (call) => after(await taskSigners.withdraw(call.body, attributionOf(call))),
  })
}
