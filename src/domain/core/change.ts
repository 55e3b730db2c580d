// A change is what a decision wants written: the rows it has read (by version), the rows it writes, and the journal
// entries that say so. There is no way to commit a change without an entry.

import type { Alert } from '#domain/alerts/alert.ts'
import type { Allocation } from '#domain/fleet/allocation.ts'
import type { CertificateRecord, Denial, KeyBan } from './certificate.ts'
import type { DomainSettings } from './domain-settings.ts'
import type { HardwareProfile } from './hardware-profile.ts'
import type { KeyClaim } from '#domain/identity/key-claim.ts'
import type { IssuerRecord } from '#domain/ca/issuer.ts'
import type { EntryDraft } from './journal-entry.ts'
import type { Node, NodeId } from './node.ts'
import type { Claim, PeerDomain } from '#domain/federation/peer-domain.ts'
import type { Plan } from '#domain/plans/plan.ts'
import type { OperatorKey } from './principal.ts'
import type { Profile } from './profile.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import type { Token } from '#domain/enrollment/token.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import type { OverlayAddress, WireguardKey } from './wireguard.ts'

/** Every kind of row decisions are made on, and what it holds. */
export type RowTypes = {
  /** key: the node's id */
  node: Node
  /** key: the hash of its secret */
  token: Token
  /** key: certificateKey(issuer, serial) */
  certificate: CertificateRecord
  /** key: denialKey(denial) */
  denial: Denial
  /** key: the hash of the public key */
  'key-ban': KeyBan
  /** key: the hash of the public key */
  'key-claim': KeyClaim
  /** key: its name */
  profile: Profile
  /** key: 'domain' */
  domain: DomainSettings
  /** key: the hash of the key */
  'operator-key': OperatorKey
  /** key: its issuer id */
  issuer: IssuerRecord
  /** key: alertKey(alert) */
  alert: Alert
  /** key: its name */
  vcluster: VCluster
  /** key: its id */
  allocation: Allocation
  /** key: the public key */
  'wireguard-key': WireguardKey
  /** key: the address */
  'overlay-address': OverlayAddress
  /** key: its id */
  receipt: Receipt
  /** key: its id */
  plan: Plan
  /** key: its name */
  'peer-domain': PeerDomain
  /** key: claimKey(claim) */
  claim: Claim
  /** key: its tag */
  'hardware-profile': HardwareProfile
}

export type RowKind = keyof RowTypes

export type Row<T> = { readonly value: T; readonly version: number }

/** A row a decision relied on. Version 0: it relied on the row not being there. */
export type Read = { readonly row: RowKind; readonly key: string; readonly version: number }

export type Write = { readonly [K in RowKind]: { readonly put: K; readonly value: RowTypes[K] } }[RowKind]

export type Change = {
  readonly reads: readonly Read[]
  readonly writes: readonly Write[]
  /** At least one, in the order they are to be read. */
  readonly entries: readonly [EntryDraft, ...EntryDraft[]] | readonly [...EntryDraft[], EntryDraft]
  /** Relies on no replica holding a channel of this node: one that was opened meanwhile wins the race. */
  readonly unheld?: NodeId
}

export const readOf = (row: RowKind, key: string, found: Row<unknown> | null): Read => ({
  row,
  key,
  version: found === null ? 0 : found.version,
})
