// An order to cut somebody off, carried out by the flow that is meant for it.

import type { CutOffOrder } from '#domain/core/cut-off.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { haltIssuance } from '#plane/identity/change-issuance.ts'
import { withdrawAuthority, type WithdrawAuthorityDeps } from '#plane/ca/withdraw-authority.ts'
import { withdrawIdentity, type WithdrawDeps } from '#plane/revocation/withdraw-identity.ts'

export const performCutOff = (
  deps: WithdrawDeps & WithdrawAuthorityDeps,
  order: CutOffOrder,
): Promise<object | Refusal> => {
  switch (order.kind) {
    case 'quarantine':
    case 'revoke':
      return withdrawIdentity(deps, order.node, { kind: order.kind, reason: order.reason }, order.by)
    case 'halt':
      return haltIssuance(deps, { reason: order.reason, renewals: order.renewals }, order.by)
    case 'withdraw':
      return withdrawAuthority(deps, order.issuer, order.reason, order.by)
  }
}
