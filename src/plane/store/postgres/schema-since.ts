// Since which schema there is a place for what this release stores. A plane also runs on the schema of the release before,
// while replicas of that release have a lease (schema-gate.ts). A new kind of row or a new field of a row does not compile
// before it has a line here; without one for a new column or table test/store/postgres-upgrade.test.ts fails.

import type { RowKind, RowTypes } from '#domain/core/change.ts'

/** Every schema, and the release that brought it: a replica of an earlier release does not know it. */
export const releaseOfSchema = {
  1: '0.1.0',
  2: '0.2.0',
  3: '0.2.1',
  4: '0.4.0',
  5: '0.5.0',
  6: '0.6.0',
  7: '0.7.0',
} as const

export type Schema = keyof typeof releaseOfSchema

export const newestSchema: Schema = 7
/** That of the oldest release in test/compat/previous. A plane does not run on an older one: it takes the steps when it starts. */
export const oldestSchema: Schema = 2

/**
 * `leftOut`: on an older schema such rows are not written, because the step derives them from other rows. Else a commit that
 * writes one is refused there.
 */
type KindSince = { readonly schema: Schema; readonly before: 'refused' | 'leftOut' }

const since = (schema: Schema): KindSince => ({ schema, before: 'refused' })

export const kindsSince: { readonly [K in RowKind]: KindSince } = {
  node: since(1),
  token: since(1),
  certificate: since(1),
  denial: since(1),
  'key-ban': since(1),
  'key-claim': { schema: 3, before: 'leftOut' },
  profile: since(1),
  domain: since(1),
  'operator-key': since(1),
  issuer: since(1),
  alert: since(1),
  vcluster: since(2),
  allocation: since(2),
  'wireguard-key': since(2),
  'overlay-address': since(2),
  receipt: since(2),
  plan: since(2),
  'peer-domain': since(2),
  claim: since(2),
  'hardware-profile': since(2),
  program: since(4),
  'name-claim': since(4),
  'purged-node': since(4),
  'task-signers': since(6),
  worker: since(6),
  'worker-issuer': since(6),
  task: since(6),
  'task-line': since(6),
  'task-rollout': since(6),
  'rollout-nodes': since(6),
  'run-tally': since(6),
  'outside-issuer': since(7),
  order: since(7),
  'issuer-revocation': since(7),
  'issuer-migration': since(7),
}

/** Since when rows are removed by a commit: replicas of an earlier release think that a row they have read stays. */
export const removalsSince: Schema = 4

/** Tables and columns beside those of the kinds of rows. */
export const partsSince = {
  lived: 3,
  'replica.clock_offset_ms': 3,
  'observation.outputs': 4,
  'observation.task_verifiers': 6,
  'observation.issuer_roots': 7,
} as const satisfies Readonly<Record<string, Schema>>

export type SchemaPart = keyof typeof partsSince

/** Values that are younger than their field. A row that has one is refused on an older schema: replicas of that release would misread it. */
export const valuesSince: { readonly [K in RowKind]?: Readonly<Record<string, Readonly<Record<string, Schema>>>> } = {
  issuer: {
    role: { 'outside-root': 7, 'outside-issuing': 7, 'renewal-root': 7 },
    custody: { pkcs11: 7, transit: 7 },
  },
}

/**
 * Fields that are left out where they say nothing: of what a list of a row has, into which the table below does not look, and of rows whose MAC
 * a value that is filled in would break. A row that has one is refused on an older schema. In the table below they have the schema of their kind.
 */
export const presentSince: { readonly [K in RowKind]?: Readonly<Record<string, Schema>> } = {
  profile: { 'outputs.issuer': 7 },
  vcluster: { 'outputs.issuer': 7 },
  'worker-issuer': { signedBy: 7 },
}

type Leaf = string | number | boolean | null | undefined | readonly unknown[]
type IsUnion<T, All = T> = T extends unknown ? ([All] extends [T] ? false : true) : never
type KeysOf<T> = T extends unknown ? keyof T : never
type FieldsSince<T> =
  true extends IsUnion<T>
    ? { readonly [F in KeysOf<T>]: Schema }
    : {
        readonly [F in keyof T]-?: [T[F]] extends [Leaf]
          ? Schema
          : true extends IsUnion<T[F]>
            ? Schema
            : FieldsSince<T[F]>
      }

/**
 * A field that is younger than its kind has a value for older rows in older-rows.ts. On an older schema a row with that value is
 * written without the field, and one with another value is refused. An optional field that replicas of the release before keep and
 * ignore has the schema of its kind.
 */
export const fieldsSince: { readonly [K in RowKind]: FieldsSince<RowTypes[K]> } = {
  node: {
    ...{ id: 1, profile: 1, membership: 1, epoch: 1, tenure: 1, assignment: 1, drain: 1 },
    ...{ allocations: 2, wireguard: 2, machine: { tags: 2, firmware: 2, readiness: 2, slots: 2 } },
    ...{
      hardware: { macs: 1, bmcSerial: 1 },
      reportedHardware: 1,
      facts: 1,
      assurance: 1,
      conditions: 1,
      approvals: 1,
      counter: 1,
    },
    ...{ recovery: 1, repair: 1, rehearsal: 1, registeredAtMs: 1, registeredBy: 1, unreadable: 1, provisioning: 4 },
    scrapeAddress: 5,
  },
  token: {
    ...{ id: 1, hash: 1, scope: 1, profile: 1, replace: 1, batch: 1, attempt: 1 },
    ...{ serverName: 4, createdBy: 1, createdAtMs: 1, expiresAtMs: 1, state: 1 },
  },
  certificate: {
    ...{
      issuer: 1,
      serial: 1,
      subject: 1,
      spki: 1,
      sha256: 1,
      issuedAtMs: 1,
      notAfterMs: 1,
      der: 1,
      order: 1,
      renews: 1,
    },
  },
  denial: { kind: 1, node: 1, epoch: 1, issuer: 1, serial: 1, atMs: 2, untilMs: 1, why: 1, reason: 2 },
  'key-ban': { spki: 1, why: 1, atMs: 1 },
  'key-claim': { spki: 3, holders: 3 },
  profile: {
    ...{ name: 1, description: 1, join: { allOf: 1, tokenScope: 1, tokenTtlMs: 1 } },
    certificate: {
      ...{ lifetimeMs: 1, renewFrom: 1, renewTo: 1, keyTypes: 1, subject: { cn: 1, o: 1, ou: 1 } },
      ...{ uriSan: 1, aiaUrl: 1, cdpUrl: 1, issuer: 7, minLifetimeMs: 7 },
    },
    ...{ keyStorage: 1, onActiveConflict: 1, probeSilenceMs: 3, comeback: { by: 1, people: 1 } },
    ...{ recovery: { mode: 1, limit: 1, windowMs: 1, rehearseEveryMs: 1 }, onDuplicate: 1 },
    wireguard: { mode: 2, listenPort: 2, mtu: 2 },
    outputs: 4,
    deletedAtMs: 5,
  },
  domain: {
    ...{ name: 1, defaultProfile: 1, livenessGraceMs: 1, strangersPerMinute: 1, strangersPerMinutePerSource: 1 },
    ...{ clockToleranceMs: 1, stuckEnrollmentMs: 1, drainMs: 1, continuity: { lineage: 1, doubt: 1 }, issuance: 2 },
    maintenance: {
      policy: { enforcementMode: 2, execWhitelist: 2, shellWhitelist: 2, regulated: 2 },
      timeSync: 2,
    },
    overlayPrefix: 2,
    programListMs: 4,
    tasks: { run: 6, reboot: 6, approveRunAbove: 6 },
  },
  'operator-key': {
    ...{ id: 1, name: 1, role: 1, hash: 1, createdBy: 1, createdAtMs: 1, revokedAtMs: 1, mac: 1 },
    // A replica that does not know it would honour the key for good.
    expiresAtMs: 5,
  },
  issuer: {
    ...{ id: 1, role: 1, der: 1, parent: 1, custody: 1, notBeforeMs: 1, notAfterMs: 1, retiredAtMs: 1 },
    compromisedAtMs: 2,
  },
  alert: { id: 1, kind: 1, subject: 1, node: 1, severity: 1, sinceMs: 1, reason: 1, state: 1 },
  vcluster: {
    ...{ name: 2, description: 2, revision: 2, peering: 2, closed: 2 },
    overlay: { files: 2, services: 2, terms: 4, templates: 4, checks: 4 },
    policy: { enforcementMode: 2, execWhitelist: 2, shellWhitelist: 2, regulated: 2 },
    ...{ createdAtMs: 2, createdBy: 2, deletedAtMs: 2, outputs: 4, tasks: { types: 6 } },
  },
  allocation: { id: 2, vcluster: 2, owner: 2, node: 2, createdAtMs: 2, createdBy: 2, state: 2 },
  'wireguard-key': { publicKey: 2, node: 2, sinceMs: 2, endedAtMs: 2, replaced: 2 },
  'overlay-address': { address: 2, node: 2, sinceMs: 2, releasedAtMs: 2 },
  receipt: {
    ...{ id: 2, kind: 2, node: 2, epoch: 2, reason: 2, by: 2, decidedAtMs: 2, certificates: 2, replicas: 2, peers: 2 },
    ...{ effectiveAtMs: 2, settledAtMs: 2, clocks: 2 },
  },
  plan: { id: 2, action: 2, effects: 2, by: 2, computedAtMs: 2, expiresAtMs: 2, applied: 2, forged: 2 },
  'peer-domain': { name: 2, url: 2, roots: 2, statementKeys: 2, addedAtMs: 2, addedBy: 2, removedAtMs: 2 },
  claim: { hardware: 2, domain: 2, node: 2, state: 2, atMs: 2, receivedAtMs: 2 },
  'hardware-profile': {
    ...{ tag: 2, description: 2, firmware: 2, tags: 2, slots: 2, sku: 2 },
    ...{ createdAtMs: 2, createdBy: 2, removedAtMs: 2 },
  },
  program: { node: 4, epoch: 4, output: 4, current: 4, former: 4, ended: 4 },
  'name-claim': { name: 4, holder: 4, sinceMs: 4, by: 4, carriedUntilMs: 4 },
  'purged-node': { name: 4, epoch: 4, tenure: 4, counter: 4, version: 4, purgedAtMs: 4 },
  'task-signers': { number: 6, signers: 6, forged: 6 },
  worker: {
    ...{ id: 6, issuer: 6, instance: 6, iss: 6, sub: 6, enrolledAtMs: 6, former: 6, tokens: 6, revoked: 6, forged: 6 },
    issuerSinceMs: 6,
    current: { issuer: 6, serial: 6, spki: 6, sha256: 6, issuedAtMs: 6, notAfterMs: 6 },
  },
  'worker-issuer': {
    ...{ name: 6, iss: 6, aud: 6, sub: 6, keys: 6, types: 6, vclusters: 6 },
    ...{ createdAtMs: 6, createdBy: 6, removedAtMs: 6, forged: 6, signedBy: 6 },
  },
  task: {
    ...{ id: 6, node: 6, epoch: 6, type: 6, parameters: {}, queuedBy: { kind: 6, id: 6, name: 6 }, rollout: 6 },
    ...{ createdAtMs: 6, expiresAtMs: 6, correlation: 6, state: 6, forged: 6 },
  },
  'task-line': { node: 6, counter: 6, queued: 6, dispatched: 6, dispatchedOfWorkers: 6, lastOf: 6, queuedOf: {} },
  'task-rollout': {
    ...{ id: 6, type: 6, parameters: {}, lifeMs: 6, nodes: 6, concurrency: 6, failureLimit: 6, by: 6, createdAtMs: 6 },
    ...{ queuedBy: { kind: 6, id: 6 }, correlation: 6, reached: 6, refused: 6, forgiven: 6, state: 6, forged: 6 },
    ...{ lastRefused: 6, stalledBy: 6, appliedBy: { kind: 6, id: 6 } },
  },
  'rollout-nodes': { rollout: 6, part: 6, nodes: 6, untilMs: 6, forged: 6 },
  'run-tally': { of: 6, slots: 6 },
  'outside-issuer': {
    ...{ id: 7, name: 7, url: 7, serverRoots: 7, roots: 7, access: 7, secrets: 7, abilities: 7, state: 7 },
    ...{ addedAtMs: 7, addedBy: 7, forged: 7 },
  },
  order: {
    ...{
      id: 7,
      issuer: 7,
      subject: 7,
      spki: 7,
      request: 7,
      issuedAtMs: 7,
      lifetimeMs: 7,
      token: 7,
      attempts: 7,
      state: 7,
    },
  },
  'issuer-revocation': {
    ...{ issuer: 7, serial: 7, reason: 7, why: 7, order: 7, receipt: 7, atMs: 7, untilMs: 7, state: 7 },
  },
  'issuer-migration': { id: 7, profile: 7, from: 7, to: 7, stage: 7, excluded: 7, by: 7, sinceMs: 7, forged: 7 },
}
