// Carries out a pending cut-off by its flow.

import { reasonCodeOf, type CutOffOrder } from '#domain/core/cut-off.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { haltIssuance } from '#plane/identity/issuance-routes.ts'
import { withdrawAuthority } from '#plane/ca/withdraw-authority.ts'
import { withdrawIdentity } from '#plane/revocation/withdraw-identity.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { revokeWorker } from '#plane/workers/revoke-worker.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { OpenChannels, PeerProofs } from '#plane/core/open-channels.ts'
import type { Receipts } from '#plane/revocation/receipts.ts'

export type CutOffParts = {
  readonly authority: Pick<Authority, 'withdraw'>
  readonly channels: OpenChannels
  readonly peers: PeerProofs
  readonly receipts: Pick<Receipts, 'collect'>
}

export const performCutOff = (core: FlowCore, parts: CutOffParts, order: CutOffOrder): Promise<object | Refusal> => {
  switch (order.kind) {
    case 'quarantine':
      return withdrawIdentity(core, parts, order.node, { kind: order.kind, reason: order.reason }, order.by)
    case 'revoke': {
      const { kind, node, reason, by } = order
      return withdrawIdentity(core, parts, node, { kind, reason, reasonCode: reasonCodeOf(order) }, by)
    }
    case 'revoke-worker':
      return revokeWorker(core, parts, order.worker, order)
    case 'halt':
      return haltIssuance(core, { reason: order.reason, renewals: order.renewals }, order.by)
    case 'withdraw':
      return withdrawAuthority(core.feed, parts.authority, parts.channels, order)
  }
}
