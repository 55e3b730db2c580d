// What the database sees of a row's value: its key and the few columns queries and unique constraints need. All of it
// is derived here and nowhere else, so a column can never say something the document does not.

import { alertKey } from '#domain/alerts/alert.ts'
import { releasedKeptMs } from '#domain/fleet/allocation.ts'
import { certificateHolder, certificateKey, denialKey } from '#domain/core/certificate.ts'
import type { NodeGroup, RowKind, RowTypes } from '#domain/core/change.ts'
import { isShared } from '#domain/identity/key-claim.ts'
import type { HardwareIdentity, Node } from '#domain/core/node.ts'
import { programEndsMs, programKey } from '#domain/programs/program.ts'
import { claimKeptMs, claimKey } from '#domain/federation/peer-domain.ts'
import type { Token } from '#domain/core/token.ts'
import { workerEndsMs } from '#domain/workers/worker.ts'
import { issuerRevocationKey, revocationPlace } from '#domain/issuers/issuer-revocation.ts'
import { forgettableFromMs, hasOrphans, lastingPlace, openFor } from '#domain/issuers/order.ts'
import type { WorkerIssuer } from '#domain/workers/worker-issuer.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { rolloutEndedAtMs, rolloutNodesKey } from '#domain/tasks/rollout.ts'
import { endedAtMs, endedTaskKeptMs, queuerKey, taskDue, taskLane, taskPlace } from '#domain/tasks/task.ts'

type ColumnValue = string | number | null

export type TableShape<T> = {
  readonly table: string
  readonly key: (value: T) => string
  readonly columns: Readonly<Record<string, (value: T) => ColumnValue>>
  /** Columns a row is born with and keeps: leaving them out of updates spares their indexes. */
  readonly fixed: readonly string[]
  /** Columns of which no two rows have the same value, where they have one. */
  readonly unique?: readonly string[]
  /** Values inside the document that rows are found by. Each has an index and no column, which planes of the release before would not fill. */
  readonly lookups?: Readonly<Record<string, readonly (string | number)[]>>
}

export const tableShapes: { readonly [K in RowKind]: TableShape<RowTypes[K]> } = {
  node: {
    table: 'node',
    key: (node) => node.id,
    columns: {
      membership: (node) => node.membership.kind,
      profile: (node) => node.profile,
      vcluster: (node) => node.assignment,
    },
    fixed: [],
  },
  token: {
    table: 'token',
    key: (token) => token.hash,
    columns: { id: (token) => token.id, node: nodeOfToken },
    fixed: ['id'],
    unique: ['id'],
  },
  certificate: {
    table: 'certificate',
    key: (row) => certificateKey(row.issuer, row.serial),
    columns: {
      node: (row) => certificateHolder(row.subject),
      not_after_ms: (row) => row.notAfterMs,
    },
    fixed: [],
  },
  denial: { table: 'denial', key: denialKey, columns: { until_ms: (denial) => denial.untilMs }, fixed: [] },
  'key-ban': { table: 'key_ban', key: (ban) => ban.spki, columns: {}, fixed: [] },
  'key-claim': {
    table: 'key_claim',
    key: ({ spki }) => spki,
    columns: { shared: (claim) => (isShared(claim) ? 1 : 0) },
    fixed: [],
    // Of several all are found by `shared`.
    lookups: { holder: ['holders', 0, 'node'] },
  },
  profile: { table: 'profile', key: (profile) => profile.name, columns: {}, fixed: [] },
  domain: { table: 'domain', key: () => 'domain', columns: {}, fixed: [] },
  'operator-key': {
    table: 'operator_key',
    key: (key) => key.hash,
    // A name is taken as long as its key is live.
    columns: { id: (key) => key.id, live_name: (key) => (key.revokedAtMs === null ? key.name : null) },
    fixed: ['id'],
    unique: ['id', 'live_name'],
  },
  issuer: { table: 'issuer', key: (issuer) => issuer.id, columns: {}, fixed: [] },
  alert: {
    table: 'alert',
    key: alertKey,
    columns: { id: (alert) => alert.id, unresolved: (alert) => (alert.state.kind === 'resolved' ? 0 : 1) },
    fixed: [],
    unique: ['id'],
    lookups: { node: ['node'] },
  },
  vcluster: { table: 'vcluster', key: ({ name }) => name, columns: {}, fixed: [] },
  allocation: {
    table: 'allocation',
    key: ({ id }) => id,
    columns: {
      node: ({ node }) => node,
      vcluster: ({ vcluster }) => vcluster,
      state: ({ state }) => state.kind,
      // Null as long as it is not released: then it is never forgotten.
      until_ms: ({ state }) => (state.kind === 'released' ? state.atMs + releasedKeptMs : null),
    },
    fixed: ['node', 'vcluster'],
  },
  'wireguard-key': {
    table: 'wireguard_key',
    key: ({ publicKey }) => publicKey,
    columns: {},
    fixed: [],
    lookups: { node: ['node'] },
  },
  'overlay-address': {
    table: 'overlay_address',
    key: ({ address }) => address,
    columns: {},
    fixed: [],
    lookups: { node: ['node'] },
  },
  receipt: {
    table: 'receipt',
    key: ({ id }) => id,
    columns: { node: ({ node }) => node, unsettled: ({ settledAtMs }) => (settledAtMs === null ? 1 : 0) },
    fixed: ['node'],
  },
  plan: { table: 'plan', key: ({ id }) => id, columns: { until_ms: ({ expiresAtMs }) => expiresAtMs }, fixed: [] },
  'peer-domain': { table: 'peer_domain', key: ({ name }) => name, columns: {}, fixed: [] },
  claim: {
    table: 'claim',
    key: claimKey,
    columns: {
      hardware: ({ hardware }) => hardware,
      domain: ({ domain }) => domain,
      until_ms: ({ receivedAtMs }) => receivedAtMs + claimKeptMs,
    },
    fixed: ['hardware', 'domain'],
  },
  'hardware-profile': { table: 'hardware_profile', key: ({ tag }) => tag, columns: {}, fixed: [] },
  program: {
    table: 'program',
    key: programKey,
    columns: { node: ({ node }) => node, until_ms: programEndsMs },
    fixed: ['node'],
  },
  'name-claim': {
    table: 'name_claim',
    key: ({ name }) => name,
    columns: {
      node: ({ holder }) => (holder.kind === 'node' ? holder.node : null),
      holder: ({ holder }) => holder.kind,
    },
    fixed: [],
  },
  'purged-node': { table: 'purged_node', key: ({ name }) => name, columns: {}, fixed: [] },
  'task-signers': { table: 'task_signers', key: () => 'domain', columns: {}, fixed: [] },
  worker: {
    table: 'worker',
    key: ({ id }) => id,
    columns: { issuer: ({ issuer }) => issuer, until_ms: workerEndsMs },
    fixed: ['issuer'],
  },
  'worker-issuer': {
    table: 'worker_issuer',
    key: ({ name }) => name,
    // Of those that are there: of two that are added at once for the same tokens one is.
    columns: { live_claims: (issuer) => (issuer.removedAtMs === null ? claimsKey(issuer) : null) },
    fixed: [],
    unique: ['live_claims'],
  },
  task: {
    table: 'task',
    key: ({ id }) => id,
    columns: {
      node: ({ node }) => node,
      type: ({ type }) => type,
      rollout: ({ rollout }) => rollout,
      // An id may be derived from a caller's key: it says nothing about the age.
      sort_key: taskPlace,
      state: ({ state }) => state.kind,
      due: taskDue,
      // Null as soon as it does not wait any more: then what ends it is no longer looked for.
      waits_for: (task) => (endedAtMs(task) === null ? task.node : null),
      queuer: ({ state, queuedBy }) => (state.kind === 'queued' ? queuerKey(queuedBy) : null),
      lane: taskLane,
      until_ms: (task) => {
        const atMs = endedAtMs(task)
        return atMs === null ? null : atMs + endedTaskKeptMs
      },
    },
    fixed: ['node', 'type', 'rollout', 'sort_key'],
  },
  'task-line': { table: 'task_line', key: ({ node }) => node, columns: {}, fixed: [] },
  'task-rollout': {
    table: 'task_rollout',
    key: ({ id }) => id,
    columns: {
      // Of one that the leader has something to do with.
      open: (rollout) => (rolloutEndedAtMs(rollout) === null ? rollout.id : null),
      until_ms: (rollout) => {
        const atMs = rolloutEndedAtMs(rollout)
        return atMs === null ? null : atMs + endedTaskKeptMs
      },
    },
    fixed: [],
  },
  'rollout-nodes': {
    table: 'rollout_nodes',
    key: rolloutNodesKey,
    columns: { until_ms: ({ untilMs }) => untilMs },
    fixed: ['until_ms'],
  },
  'run-tally': { table: 'run_tally', key: ({ of }) => of, columns: {}, fixed: [] },
  'outside-issuer': { table: 'outside_issuer', key: ({ name }) => name, columns: {}, fixed: [] },
  order: {
    // ORDER is a word of SQL.
    table: 'signing_order',
    key: ({ id }) => id,
    columns: {
      issuer: ({ issuer }) => issuer,
      leaf: ({ subject }) => subject.kind,
      state: ({ state }) => state.kind,
      // Of two that are placed at once for the same certificate one is. A change that replaces one writes that one first.
      open_for: openFor,
      orphaned: (order) => (hasOrphans(order) ? 1 : 0),
      until_ms: (order) => forgettableFromMs(order, 0),
      // The last to end comes first; null: nothing was signed for it.
      lasting: lastingPlace,
    },
    fixed: ['issuer', 'leaf'],
    unique: ['open_for'],
    lookups: { node: ['subject', 'node'] },
  },
  'issuer-revocation': {
    table: 'issuer_revocation',
    key: issuerRevocationKey,
    columns: {
      issuer: ({ issuer }) => issuer,
      due: revocationPlace,
      receipt: ({ receipt }) => receipt,
      // Null as long as it is not over.
      until_ms: ({ state, untilMs }) => (state.kind === 'waiting' ? null : untilMs),
    },
    fixed: ['issuer'],
  },
  'issuer-migration': { table: 'issuer_migration', key: ({ profile }) => profile, columns: {}, fixed: [] },
}

const columnTypes: Readonly<Record<string, 'bigint' | 'smallint'>> = {
  not_after_ms: 'bigint',
  until_ms: 'bigint',
  unresolved: 'smallint',
  unsettled: 'smallint',
  shared: 'smallint',
  orphaned: 'smallint',
}

/** Of the columns above, as PostgreSQL names it. */
export const columnTypeOf = (column: string): 'text' | 'bigint' | 'smallint' => columnTypes[column] ?? 'text'

/** A digest: each of them may be longer than a database takes into an index. */
function claimsKey({ iss, aud, sub }: WorkerIssuer): string {
  return sha256Hex(JSON.stringify([iss, aud, sub]))
}

/** The node a token is for, or the one it let in. */
function nodeOfToken(token: Token): string | null {
  if (token.scope.kind === 'node') return token.scope.node
  return token.state.kind === 'bound' || token.state.kind === 'used' ? token.state.node : null
}

/** Whether a node that is not revoked is under it, of a row that is not written yet. */
export const isUnder = ({ membership, profile, assignment }: Node, { kind, name }: NodeGroup): boolean =>
  membership.kind !== 'revoked' && (kind === 'profile' ? profile : assignment) === name

/** What a node holds that no other may. */
export const hardwareValues = (hardware: HardwareIdentity): readonly string[] => {
  const macs = [...new Set(hardware.macs)].map((mac) => `mac:${mac}`)
  return hardware.bmcSerial === null ? macs : [...macs, `bmc:${hardware.bmcSerial}`]
}
