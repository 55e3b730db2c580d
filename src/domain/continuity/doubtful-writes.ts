// What may still be written by a plane that knows that its store has lost commits. Such a store may have forgotten
// revocations, spent tokens and withdrawn keys, so nothing is granted from it. Taking rights away stays possible, because a
// stolen machine has to be cut off at any time; and so do the confirmation itself and the upkeep of the plane's own
// authorities, without which it could not start and be confirmed.

import type { EntryType } from '#domain/core/journal-entry.ts'

const permitted: ReadonlySet<EntryType> = new Set<EntryType>([
  // rights taken away
  'host.revoked',
  'node.quarantined',
  'node.draining',
  'node.recovery_denied',
  'enrollment_token.revoked',
  'operator_key.revoked',
  'issuance.halted',
  'ca.compromised',
  'signer.withdrawn',
  'peer_domain.removed',
  'worker.revoked',
  'worker.issuer_removed',
  'issuer.disabled',
  'issuer.retired',
  'issuer.revocation_queued',
  'issuer.revoked',
  'issuer.revocation_given_up',
  'allocation.release_requested',
  'allocation.released',
  'receipt.effective',
  'receipt.straggling',
  'receipt.settled',
  'plan.computed',
  'plan.applied',
  'task.cancelled',
  'rollout.held',
  'rollout.cancelled',
  'rollout.settled',
  // what is noticed, and said
  'task.completed',
  'task.failed',
  'task.refused',
  'task.unknown',
  'task.expired',
  'refused',
  'refusals.counted',
  'alert.raised',
  'alert.acknowledged',
  'alert.resolved',
  'node.condition_raised',
  'node.condition_cleared',
  'store.doubted',
  'store.confirmed',
  'store.row_restored',
  // Without it no operator could confirm a store from before operator keys had MACs. The proven journal vouches for the key.
  'operator_key.adopted',
  // As it stands, before the first task signer: without both the plane could not start.
  'overlay.adopted',
  // the plane itself
  'ca.created',
  'ca.requested',
  'ca.rotated',
  'ca.retired',
  'ca.aging',
  'server_certificate.issued',
  'signer.created',
  'signer.rotated',
  'signer.retired',
  'signer.renumbered',
])

/** A change is what its entries say: one entry of another kind, and the whole of it is refused. */
export const permittedInDoubt = (entries: readonly { readonly type: EntryType }[]): boolean =>
  entries.every(({ type }) => permitted.has(type))
