// What a decision is and what it writes. A change names the rows it has read (by version), the rows it writes, and the
// journal entries that say so. There is no way to commit a change without an entry.

import type { Alert } from '#domain/alerts/alert.ts'
import type { Allocation } from '#domain/fleet/allocation.ts'
import type { CertificateRow, Denial, KeyBan } from './certificate.ts'
import type { DomainSettings } from './domain-settings.ts'
import type { HardwareProfile } from './hardware-profile.ts'
import type { KeyClaim } from '#domain/identity/key-claim.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerRevocation } from '#domain/issuers/issuer-revocation.ts'
import type { IssuerMigration } from '#domain/issuers/migration.ts'
import type { Order } from '#domain/issuers/order.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { EntryDraft } from './journal-entry.ts'
import type { Node, NodeId } from './node.ts'
import type { Claim, PeerDomain } from '#domain/federation/peer-domain.ts'
import type { Plan } from '#domain/plans/plan.ts'
import type { NameClaim } from '#domain/programs/name-claim.ts'
import type { Program } from '#domain/programs/program.ts'
import type { OperatorKey } from './principal.ts'
import type { Profile } from './profile.ts'
import type { PurgedNode } from './purged-node.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import type { TaskSigners } from '#domain/tasks/signers.ts'
import type { Rollout, RolloutNodes } from '#domain/tasks/rollout.ts'
import type { RunTally } from '#domain/tasks/run-tally.ts'
import type { Task, TaskLine } from '#domain/tasks/task.ts'
import type { Token } from './token.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import type { WireguardAddress, WireguardKey } from './wireguard.ts'
import type { Worker } from '#domain/workers/worker.ts'
import type { WorkerIssuer } from '#domain/workers/worker-issuer.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { refuse, type Refusal } from './refusal.ts'

/** Every kind of row decisions are made on, and what it holds. */
export type RowTypes = {
  /** key: the node's id */
  node: Node
  /** key: the hash of its secret */
  token: Token
  /** key: certificateKey(issuer, serial) */
  certificate: CertificateRow
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
  issuer: IssuerRow
  /** key: alertKey(alert) */
  alert: Alert
  /** key: its name */
  vcluster: VCluster
  /** key: its id */
  allocation: Allocation
  /** key: the public key */
  'wireguard-key': WireguardKey
  /** key: the address */
  'overlay-address': WireguardAddress
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
  /** key: programKey(program) */
  program: Program
  /** key: the name */
  'name-claim': NameClaim
  /** key: the hash of the name */
  'purged-node': PurgedNode
  /** key: 'domain' */
  'task-signers': TaskSigners
  /** key: its id */
  worker: Worker
  /** key: its name */
  'worker-issuer': WorkerIssuer
  /** key: its id */
  task: Task
  /** key: the node's id */
  'task-line': TaskLine
  /** key: its id */
  'task-rollout': Rollout
  /** key: rolloutNodesKey(part) */
  'rollout-nodes': RolloutNodes
  /** key: whose runs it counts */
  'run-tally': RunTally
  /** key: its name */
  'outside-issuer': OutsideIssuer
  /** key: its id, which certificates name */
  order: Order
  /** key: issuerRevocationKey(revocation) */
  'issuer-revocation': IssuerRevocation
  /** key: the name of the profile */
  'issuer-migration': IssuerMigration
}

export type RowKind = keyof RowTypes

/**
 * Of rows that carry a MAC (plane/seals): no plane of this domain wrote the row as it is, or its journal has ended what the row stands for.
 * Set where it is read, and never stored. Nothing is done because of such a row.
 */
export type MayBeForged = { readonly forged?: true }

export const forgedWords = 'its row in the database is not as a plane of this domain wrote it'

export type Row<T> = { readonly value: T; readonly version: number }

/** A row a decision relied on. Version 0: it relied on the row not being there. */
export type Read = {
  readonly row: RowKind
  readonly key: string
  readonly version: number
  /** The version that a row of this key had when it was removed: a new one begins behind it, so that no version comes twice. */
  readonly removedAt?: number
}

/** The version of a row that is written after it was read so. */
export const nextVersion = ({ version, removedAt = 0 }: Pick<Read, 'version' | 'removedAt'>): number =>
  (version === 0 ? removedAt : version) + 1

export type Write = { readonly [K in RowKind]: { readonly put: K; readonly value: RowTypes[K] } }[RowKind]

export type Removal = { readonly row: RowKind; readonly key: string }

export type Change = {
  readonly reads: readonly Read[]
  readonly writes: readonly Write[]
  /**
   * Rows that are removed; each is among the reads. Only what no part of a plane keeps in memory: a removal is not published. With
   * the row of a node goes what it held and what was observed of it.
   */
  readonly removes?: readonly Removal[]
  /** At least one, in the order they are to be read. */
  readonly entries: readonly [EntryDraft, ...EntryDraft[]] | readonly [...EntryDraft[], EntryDraft]
  /** Relies on no replica holding a channel of this node: one that was opened meanwhile wins the race. */
  readonly unheld?: NodeId
  /** Relies on no node that is not revoked being under it: one that came meanwhile wins the race. Its row is among the writes. */
  readonly unused?: readonly NodeGroup[]
  /**
   * Tags of hardware profiles that are among the writes. Relies on no node having one of them and that of another hardware profile: one
   * that was tagged meanwhile wins the race, and so does another hardware profile that was made meanwhile.
   */
  readonly soleTags?: readonly string[]
}

/** What nodes are under, by the name of the column that says so. */
export type NodeGroup = { readonly kind: 'profile' | 'vcluster'; readonly name: string }

export const readOf = (row: RowKind, key: string, found: Row<unknown> | null): Read => ({
  row,
  key,
  version: found === null ? 0 : found.version,
})

/** On whose behalf something is decided; goes into every journal entry. */
export type Attribution = {
  /** As `actorOf` names it, or `system:PART`. */
  readonly actor: string
  readonly source: string | null
  readonly correlation: string | null
}

export type Decided = { readonly kind: 'decided'; readonly change: Change }

export const decided = (change: Change): Decided => ({ kind: 'decided', change })

/** A draft with everything left out that the caller does not name. */
export const entry = (
  by: Attribution,
  atMs: number,
  type: EntryDraft['type'],
  about: Partial<Pick<EntryDraft, 'node' | 'epoch' | 'token' | 'issuer' | 'serial'>>,
  body: EntryDraft['body'] = {},
): EntryDraft => ({
  type,
  atMs,
  actor: by.actor,
  source: by.source,
  node: about.node ?? null,
  epoch: about.epoch ?? null,
  token: about.token ?? null,
  issuer: about.issuer ?? null,
  serial: about.serial ?? null,
  correlation: by.correlation,
  body,
})

/** Free text from outside is cut before it is stored, and secrets in it are removed. */
export const boundedText = (text: string, length = 256): string => {
  // Control characters would let a node forge lines where the journal is printed.
  const clean = redactSecrets(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
  // A cut may leave half of a surrogate pair, which PostgreSQL cannot keep.
  return (clean.length <= length ? clean : clean.slice(0, length - 1) + '…').toWellFormed()
}

// The shape of most decisions: one node's row is replaced, and the journal says why.

export type NodeDecided = Decided & { readonly node: Node }

/** What every decision about one node is given. */
export type NodeFacts = { readonly node: Row<Node>; readonly by: Attribution; readonly nowMs: number }

/** A part of a change: what it relied on, writes and says beside the row of the node. */
export type ChangePart = {
  readonly reads?: readonly Read[]
  readonly writes?: readonly Write[]
  /** Behind those of the node. */
  readonly entries?: readonly EntryDraft[]
}

/** Several that happen together. */
export const mergeParts = (parts: readonly ChangePart[]): Required<ChangePart> => ({
  reads: parts.flatMap(({ reads = [] }) => reads),
  writes: parts.flatMap(({ writes = [] }) => writes),
  entries: parts.flatMap(({ entries = [] }) => entries),
})

/** The same change, with more that happens in it. */
export const withPart = (change: Change, extra: ChangePart): Change => ({
  ...change,
  reads: [...change.reads, ...(extra.reads ?? [])],
  writes: [...change.writes, ...(extra.writes ?? [])],
  entries: [...change.entries, ...(extra.entries ?? [])] as unknown as Change['entries'],
})

export const nodeDecided = (
  from: Row<Node>,
  node: Node,
  entries: Change['entries'],
  extra: ChangePart = {},
): NodeDecided => ({
  ...decided({
    reads: [readOf('node', node.id, from), ...(extra.reads ?? [])],
    writes: [{ put: 'node', value: node }, ...(extra.writes ?? [])],
    entries: [...entries, ...(extra.entries ?? [])] as unknown as Change['entries'],
  }),
  node,
})

/** What was decided on a stand-in (journal/node-shape.ts) says so itself. No store writes it over the row, which a backup or a later release may still repair. */
export const standInOf = ({ writes }: Change): NodeId | null => {
  for (const write of writes) if (write.put === 'node' && write.value.unreadable !== undefined) return write.value.id
  return null
}

export const rowUnreadable = (id: NodeId): Refusal =>
  refuse(
    'NODE_STATE_CONFLICT',
    `the row of ${id} in the database cannot be read: put it back from a backup, or end what it stands for: ` +
      `muster node revoke ${id} --reason REASON, or, if it was not revoked before: muster node quarantine ${id} --reason REASON`,
  )
