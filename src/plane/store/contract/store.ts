// The seam every store keeps: SQLite embedded, PostgreSQL for replicas. Its contract is test/store/contract.ts, run on
// each.

import type { Alert } from '#domain/alerts/alert.ts'
import type { Change, Row, RowKind, RowTypes, Write } from '#domain/core/change.ts'
import type { CertificateRow, Denial } from '#domain/core/certificate.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { JournalEntry, EntryType } from '#domain/core/journal-entry.ts'
import type { HardwareIdentity, Membership, Node, NodeId } from '#domain/core/node.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { Token } from '#domain/core/token.ts'
import type { OpenAndFailed } from '#domain/tasks/rollout.ts'
import type { TaskState } from '#domain/tasks/task.ts'
import type { OutputsReport } from '#domain/programs/outputs-shown.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Random } from '#platform/random.ts'
import type { Timers } from '#platform/timers.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { CapabilityReportBody, OverlayStateBody } from '#wire/node/node-runs.ts'
import type { ReportBody } from '#wire/node/report.ts'
import type { FencingToken, Replicas } from './replicas.ts'

export type Store = {
  /** Null: there is no such row. What is returned is committed and durable. */
  get<K extends RowKind>(row: K, key: string): Promise<Row<RowTypes[K]> | null>

  /**
   * Every node that holds one of these MACs or this BMC serial. A tombstone holds what its node had until another node
   * takes it: a revoked machine is recognised as such, and its address is free.
   */
  nodesByHardware(hardware: HardwareIdentity): Promise<readonly Row<Node>[]>
  /** In the order of their ids, starting behind `after`. */
  nodes(query: NodeQuery): Promise<readonly Row<Node>[]>
  countNodes(): Promise<Readonly<Record<Membership['kind'], number>>>
  /** How many nodes are in each vCluster; one without nodes is not in it. */
  countAssigned(): Promise<ReadonlyMap<string, number>>
  /** How many nodes that are not revoked have reported each number of task verifiers, as far as observations are written. */
  countTaskVerifiers(): Promise<ReadonlyMap<number, number>>
  tokenById(id: string): Promise<Row<Token> | null>
  /** Newest first. */
  tokens(query: TokenQuery): Promise<readonly Row<Token>[]>
  denials(): Promise<readonly Denial[]>
  /** Without those that are deleted, which `get` finds. */
  profiles(): Promise<readonly Row<Profile>[]>
  operatorKeys(): Promise<readonly Row<OperatorKey>[]>
  issuers(): Promise<readonly Row<IssuerRow>[]>
  /** In the order of their ids, which is that of their raising, starting behind `after`. */
  alerts(query: AlertQuery): Promise<readonly Row<Alert>[]>
  alertById(id: string): Promise<Row<Alert> | null>
  /** How many tasks wait for their nodes. */
  countQueuedTasks(): Promise<number>
  /** How many of them each worker has queued, by its id. */
  countQueuedOfWorkers(): Promise<ReadonlyMap<string, number>>
  /** The tasks of a rollout, by their states. */
  countTasksOf(rollout: string): Promise<Readonly<Record<TaskState['kind'], number>>>
  /** How many of them are queued or dispatched, and how many have failed, are unknown or expired: of these at most `mostFailed` are counted. */
  countOpenAndFailed(rollout: string, mostFailed: number): Promise<OpenAndFailed>
  /** Certificates that end after that, the last to end first. */
  unexpiredCertificates(query: UnexpiredQuery): Promise<readonly Row<CertificateRow>[]>
  /** In the order of their keys or of a column, starting behind `after`. */
  list<K extends RowKind>(row: K, query: ListQuery): Promise<readonly Row<RowTypes[K]>[]>

  /**
   * All or nothing, and durable when the promise resolves. `lost-race`: a row named in `reads` has another version by
   * now, or a unique value is taken, or what it relies on being unused is not, or a node would have two hardware profiles, or a stand-in would be written over a row; nothing was written, read again and decide again. Concurrent commits share one
   * fsync; a lost race fails alone, any other failure rejects every commit of the group. With a fencing token it is rejected as
   * `StaleReplica` once another replica leads; without a lease of this replica every commit is. A row that it removes is gone with
   * the commit, and comes back only with a higher version.
   */
  commit(change: Change, fencingToken?: FencingToken): Promise<Committed | 'lost-race'>
  /**
   * Called with the commits of other replicas, once each and in the order of each replica's own commits. A row is published as it
   * is in the store by then, and never older than an earlier publication of it. Certificates, tokens and other rows that no
   * subscriber keeps in memory are not published.
   */
  onForeignCommit(run: (committed: Committed) => void): void
  readonly replicas: Replicas
  /** Sealed keys that every replica shares; null where they lie in files. */
  readonly sealedKeys: SealedKeys | null
  /** Of all replicas one at a time is in here: what is made once for the domain is made here. */
  exclusively<T>(run: () => Promise<T>): Promise<T>

  /** What is seen but never decided on. Lossy: kept in memory and written now and then, without an entry. */
  observe(node: NodeId, observation: Partial<Observation>): void
  observation(node: NodeId): Promise<Observation>
  /** Only that field, for callers that read every node: a report is long. */
  rehearsedAtMs(node: NodeId): Promise<number | null>

  readonly journal: JournalReader

  /**
   * Removes deny-list entries, certificate rows and others that can no longer matter. Returns how many. `livedMs`: a time
   * that is never ahead of the real one (lived-time.ts).
   */
  forget(livedMs: number): Promise<number>
  /** For how long replicas have led on this store, in all, as far as that was added. */
  lived(): Promise<number>
  /** So much of it has passed by a monotonic clock. Durable when the promise resolves; without an entry. */
  addLived(ms: number): Promise<void>
  /** How far a webhook has come; null before it has begun. */
  webhookProgress(): Promise<WebhookProgress | null>
  /** Durable when the promise resolves, and without an entry: it is a reader's place, not something that happened. */
  keepWebhookProgress(progress: WebhookProgress): Promise<void>
  /** Null: the schema is the one of this release. Else a commit that has no place on it is rejected as `UpgradeUnfinished`. */
  unfinishedUpgrade(): UnfinishedUpgrade | null
  /** Called once, when the schema has become the one of this release: rows may have changed without an entry. */
  onUpgraded(run: () => void): void
  /** Called for every group of commits, in the turn it ended in. */
  onCommitGroup(run: (group: CommitGroup) => void): void
  /** Reads the whole file and says what is damaged; null: nothing, or the database server looks after its own files. */
  fileFault(): Promise<string | null>
  /** Null when the store can be written to, else what is wrong. */
  trouble(): string | null
  /** What is wrong is a disk: full, failing or read-only. */
  isDiskTrouble(): boolean
  /** What an operator has to know though the store can be written to. */
  warnings(): readonly string[]
  /** Frees a part of the disk's reserve, for a file that a cut-off has to write. False: there is none. */
  makeRoom(): boolean
  /** Called once, when this process may not go on with the store: a flush failed, and nothing is committed any more. */
  onLost(run: (lost: Error) => void): void
  close(): Promise<void>
}

export type UnexpiredQuery = {
  readonly afterMs: number
  /** Those behind it; null: from the first. */
  readonly before: CertificatePlace | null
  readonly limit: number
}

/** In the order of their ends. */
export type CertificatePlace = Pick<CertificateRow, 'notAfterMs'> & { readonly key: string }

export type ListQuery = {
  /** Only rows whose columns or lookups have these values; both are those of store/commit/columns.ts. */
  readonly where?: Readonly<Record<string, string | number>>
  /** A column of texts that sorts the rows instead of their keys; a row without a value is left out. */
  readonly order?: string
  /** A key, or a value of that column. */
  readonly after: string | null
  readonly limit: number
}

export type NodeQuery = {
  readonly membership: Membership['kind'] | null
  readonly profile: string | null
  readonly vcluster?: string | null
  readonly after: NodeId | null
  readonly limit: number
}

/** `after`: an alert's id. */
export type AlertQuery = {
  readonly unresolvedOnly: boolean
  readonly after: string | null
  readonly limit: number
}

/** The store has the schema of the release before, because replicas of that release may be started again on it. */
export type UnfinishedUpgrade = {
  readonly schema: number
  readonly newest: number
  /** Each with its name and its release; empty: the schema is about to change. */
  readonly waitsFor: readonly string[]
  /** Why the last attempt of this replica failed; null: it made none, or none failed. */
  readonly failure: string | null
}

/** Everything up to `after` has been dealt with, and of what is behind it the entries with these operation ids. */
export type WebhookProgress = { readonly after: Cursor | null; readonly settled: readonly string[] }

export type CommitGroup = {
  readonly commits: number
  readonly lostRaces: number
  /** Nothing of it was committed. */
  readonly failed: boolean
  readonly ms: number
}

/** `after`: the id of a token; those that were made before it. */
export type TokenQuery = { readonly node: NodeId | null; readonly after?: string | null; readonly limit: number }

export type Observation = {
  readonly lastSeenMs: number | null
  readonly agentVersion: string | null
  readonly source: string | null
  /** The newest configuration revision the node said it runs under. */
  readonly configRevision: number | null
  /** The newest report of its agent. */
  readonly report: ReportBody | null
  /** When it last rehearsed its recovery, with any result. */
  readonly rehearsedAtMs: number | null
  /** The evidence of the process that last opened a channel. */
  readonly evidence: AgentEvidence | null
  /** The last capability report of its agent, and the state of its overlay. Sent again at every connection. */
  readonly capabilities: CapabilityReportBody | null
  readonly overlay: OverlayStateBody | null
  /** How its outputs stand on the host, likewise. */
  readonly outputs: OutputsReport | null
  /** The number of the statement of task verifiers that its helper has taken. */
  readonly taskVerifiers: number | null
  /** The revision of the roots of outside issuers that its agent has confirmed. */
  readonly issuerRoots: number | null
}

export const nothingObserved: Observation = {
  lastSeenMs: null,
  agentVersion: null,
  source: null,
  configRevision: null,
  report: null,
  rehearsedAtMs: null,
  evidence: null,
  capabilities: null,
  overlay: null,
  outputs: null,
  taskVerifiers: null,
  issuerRoots: null,
}

export type Committed = {
  readonly kind: 'committed'
  /** `elsewhere`: by another replica, which has counted it and answered its caller. */
  readonly origin: 'here' | 'elsewhere'
  readonly writes: readonly Write[]
  readonly entries: readonly StoredEntry[]
}

/** Where a reader of the journal is. Opaque: replicas may keep several chains. */
export type Cursor = string & { readonly __cursor: unique symbol }

export type StoredEntry = {
  readonly cursor: Cursor
  readonly entry: JournalEntry
  /** Canonical bytes as stored, and their chained hash (hex). */
  readonly bytes: string
  readonly hash: string
}

export type JournalReader = {
  /** Oldest first, behind `after`; `last` instead counts back from the newest. */
  read(query: JournalQuery): Promise<readonly StoredEntry[]>
  /** Behind it are the entries of this time and later ones; null: all of them. By the clocks of the planes that wrote them. */
  placeBefore(atMs: number): Promise<Cursor | null>
  /** The newest signed place of every chain; empty on an empty journal. */
  heads(): Promise<readonly JournalHead[]>
  /** The hash at this place of a chain (hex); null: there is no such place here. */
  hashAt(chain: string, sequence: number): Promise<string | null>
  /** Whether every chain begins with its first entry: else what stood before is unknown. */
  isWhole(): Promise<boolean>
  /** Whether a signed head covers the entry at this place. Reads a few entries, where `verify` reads all of them. */
  isProven(chain: string, sequence: number): Promise<boolean>
  /** Recomputes every hash and checks every signed head, up to the newest entry at the time of the call. */
  verify(options?: VerifyOptions): Promise<Verification>
}

/** A place of a chain that was seen before, kept where the database's users cannot change it. */
export type KnownPlace = { readonly chain: string; readonly sequence: number; readonly hash: string }

export type VerifyOptions = {
  /** Each has to be in its chain: a tail cut back to a signed head, or a deleted chain, shows by nothing else. */
  readonly known?: readonly KnownPlace[]
  /** Awaited between slices: a check in the background leaves the time to others. */
  readonly rest?: () => Promise<void>
}

export type JournalQuery = {
  readonly after: Cursor | null
  readonly last: number | null
  readonly limit: number
  readonly node: NodeId | null
  /** Several: entries of any of them. */
  readonly type: EntryType | readonly EntryType[] | null
}

export type JournalHead = {
  readonly chain: string
  readonly sequence: number
  readonly hash: string
  readonly signature: string
  readonly keyId: string
}

export type Verification =
  | { readonly kind: 'intact'; readonly entries: number; readonly heads: readonly JournalHead[] }
  | {
      readonly kind: 'broken'
      readonly chain: string
      /** The first entry that is not what was written, or the range one of which is not. */
      readonly from: number
      readonly to: number
      readonly why: string
      readonly entries: number
    }

/** Opaque texts by name, sealed by the caller. Durable when a promise resolves. */
export type SealedKeys = {
  all(): Promise<ReadonlyMap<string, string>>
  /** False: there is one of that name, which stays. */
  add(name: string, sealed: string): Promise<boolean>
  remove(name: string): Promise<void>
}

/**
 * What a store is built on. It is a `Core` without store and feed, because they do not exist before the store is open. A part
 * of a store takes it first, or a `Pick` of it, and its own parts after it.
 */
export type StoreCore = {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
}

/** In whose name a journal is written. */
export type JournalAuthor = {
  readonly signer: HeadSigner
  /** Goes into every entry; asked at each commit, so it may be decided after the store is open. */
  domainName(): string
}

/** Signs journal heads. Its key is not in the database, so a user who can only write the database cannot make a head. */
export type HeadSigner = {
  readonly keyId: string
  sign(head: Uint8Array): Uint8Array
  verify(head: Uint8Array, signature: Uint8Array): boolean
}
