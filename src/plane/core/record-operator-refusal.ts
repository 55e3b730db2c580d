// What operators were refused belongs in the journal as much as what they did. What was only read, or mistyped, does not.

import type { RefusalCode } from '#domain/core/refusal-table.ts'
import { recordRefusal, type RefusalBudgets, type RefusedCall } from './record-refusal.ts'
import type { FlowCore } from './core.ts'

const aboutTheCaller: readonly RefusalCode[] = [
  'OPERATOR_KEY_REQUIRED',
  'OPERATOR_KEY_INVALID',
  'OPERATOR_KEY_EXPIRED',
  'ROLE_FORBIDDEN',
]

export const recordOperatorRefusal = async (
  core: FlowCore,
  budgets: RefusalBudgets,
  call: RefusedCall,
): Promise<void> => {
  if (belongsInJournal(call)) await recordRefusal(core, budgets, call)
}

const belongsInJournal = ({ refusal, principal, method, path }: RefusedCall): boolean => {
  if (path === null) return false
  if (aboutTheCaller.includes(refusal.code)) return true
  return principal !== null && principal.kind === 'operator' && method !== 'GET'
}
