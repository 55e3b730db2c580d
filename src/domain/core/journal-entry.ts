// The journal is audit trail, change feed and outbox in one. These are the entries, before the store gives them a place
// in the chain.

import type { IssuerId, NodeId } from './node.ts'

export const entryTypes = [
  // document 002, by its names and with its fields
  'enrollment_token.created',
  'host.enrolled',
  'host.revoked',
  // the rest of a node's life
  'node.registered',
  'node.confirmed',
  'node.renewed',
  'node.renewal_confirmed',
  'node.lapsed',
  'node.returned',
  'node.approved',
  'node.settled',
  'node.draining',
  'node.drained',
  'node.undrained',
  'node.quarantined',
  'node.released',
  'node.condition_raised',
  'node.condition_cleared',
  'node.superseded',
  'node.second_holder',
  // the end of a tombstone, in parts where much is removed; what came before stays in the journal
  'node.purging',
  'node.purged',
  // the leaves of its programs, and the names they may carry
  'program.issued',
  'program.renewed',
  'program.ended',
  'node.names_added',
  'node.names_removed',
  // recovery: one correlation links the failure, the request, the issuance and the resolution
  'node.recovery_requested',
  'node.recovered',
  'node.recovery_denied',
  'node.repair_bundle_issued',
  'node.repaired',
  'node.repair_evidence',
  'node.recoverable',
  'node.unrecoverable',
  // claims on keys that a release before 0.2.1 certified without one
  'keys.claimed',
  'alert.raised',
  'alert.acknowledged',
  'alert.resolved',
  'enrollment_token.used',
  'enrollment_token.revoked',
  'refused',
  'refusals.counted',
  // the domain
  'domain.created',
  'domain.changed',
  // names that the plane serves, and join strings without a secret that carry one
  'domain.name_taken',
  'domain.name_dropped',
  'domain.join_string_made',
  'profile.created',
  'profile.changed',
  'profile.deleted',
  'operator_key.created',
  'operator_key.revoked',
  'operator_key.adopted',
  'ca.created',
  'ca.requested',
  'ca.rotated',
  'ca.retired',
  'ca.aging',
  'server_certificate.issued',
  'issuance.halted',
  'issuance.resumed',
  'ca.compromised',
  // the keys that sign tasks
  'signer.created',
  'signer.rotated',
  'signer.withdrawn',
  'signer.retired',
  'signer.renumbered',
  // the fleet
  'vcluster.created',
  'vcluster.changed',
  'vcluster.deleted',
  // what it starts has a MAC from here on
  'overlay.adopted',
  'node.assigned',
  'node.unassigned',
  'node.moved',
  'node.tagged',
  'node.machine_reported',
  'node.provisioning_reported',
  'node.scrape_address_changed',
  // what schedulers act on: an outbox, read like the rest of the journal
  'allocation.created',
  'allocation.release_requested',
  'allocation.release_withdrawn',
  'allocation.released',
  'receipt.effective',
  'receipt.straggling',
  'receipt.settled',
  'plan.computed',
  'plan.applied',
  'hardware_profile.created',
  'hardware_profile.removed',
  'peer_domain.added',
  'peer_domain.removed',
  'claim.received',
  // outside issuers, and what is revoked there
  'issuer.added',
  'issuer.changed',
  'issuer.tested',
  'issuer.disabled',
  'issuer.enabled',
  'issuer.retired',
  'issuer.migration_begun',
  'issuer.migration_moved',
  'issuer.migration_ended',
  'issuer.revocation_queued',
  'issuer.revoked',
  'issuer.revocation_given_up',
  // orders to outside issuers
  'order.placed',
  'order.lost',
  'order.abandoned',
  'issuer.violation',
  'issuer.authority_recorded',
  // workers, and who vouches for them
  'worker.enrolled',
  'worker.renewed',
  'worker.token_bound',
  'worker.revoked',
  'worker.issuer_added',
  'worker.issuer_changed',
  'worker.issuer_removed',
  // signed tasks; `task.refused` by the host, which did not begin with it
  'task.queued',
  'task.dispatched',
  'task.completed',
  'task.failed',
  'task.refused',
  'task.unknown',
  'task.expired',
  'task.cancelled',
  // one task for many nodes
  'rollout.begun',
  'rollout.advanced',
  'rollout.stalled',
  'rollout.held',
  'rollout.resumed',
  'rollout.done',
  'rollout.cancelled',
  'rollout.settled',
  // an older copy of the store was noticed, and an operator has taken it for what it is
  'store.doubted',
  'store.confirmed',
  // a row was deleted in the database that the journal says is there
  'store.row_restored',
] as const
export type EntryType = (typeof entryTypes)[number]

/** Values are short texts, numbers or null: an entry is bounded, and free text from outside is cut before it gets here. */
export type EntryBody = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

export type EntryDraft = {
  readonly type: EntryType
  readonly atMs: number
  /** `operator:NAME`, `node:ID`, `anonymous`, `system:PART`. */
  readonly actor: string
  /** The address the request came from, or null for an action of the plane itself. */
  readonly source: string | null
  readonly node: NodeId | null
  readonly epoch: number | null
  readonly token: string | null
  readonly issuer: IssuerId | null
  readonly serial: string | null
  /** Links entries of one story; the store falls back to the operation id. */
  readonly correlation: string | null
  readonly body: EntryBody
}

/** An entry in its chain. `bytes` are canonical; the hash covers exactly them. */
export type JournalEntry = EntryDraft & {
  readonly schema: 1
  readonly domain: string
  /** Unique: the commit it came in, and its place there. */
  readonly operation: string
  readonly chain: string
  readonly sequence: number
}
