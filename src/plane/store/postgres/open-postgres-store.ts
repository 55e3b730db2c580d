// The store that replicas share: one PostgreSQL.

import { type RowKind, standInOf } from '#domain/core/change.ts'
import { musterVersion } from '#platform/this-process.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { CommitGroup, Committed, JournalAuthor, Store, StoreCore } from '#plane/store/contract/store.ts'
import type { UnfinishedUpgrade } from '#plane/store/contract/store.ts'
import { forgetEnded } from '#plane/store/sql/forget.ts'
import { openJournalReader } from '#plane/store/sql/journal-reader.ts'
import { noTaskCounts, openListQueries } from '#plane/store/sql/list-queries.ts'
import { openObservations } from '#plane/store/sql/observations.ts'
import { openProgress } from '#plane/store/sql/progress.ts'
import { exclusively } from './exclusively.ts'
import { openPgGroupCommit } from './group-commit.ts'
import { openPgHealth } from './health.ts'
import { openPgJournalRuns } from './journal-runs.ts'
import type { LeaseSettings } from './lease.ts'
import { openPgReplicas, type PgReplicas } from './open-pg-replicas.ts'
import type { PgAccess } from './pg-access.ts'
import { openPgSql } from './pg-sql.ts'
import { usualPace } from './replica-pace.ts'
import { openRowReads } from './row-reads.ts'
import { migrateDatabase, type Migrated, type Patience } from './run-migrations.ts'
import { openGroupRunner } from './run-group.ts'
import type { GroupParts } from './run-transaction.ts'
import { openSchemaInUse, openUpgrade } from './schema-gate.ts'
import { openSealedKeys } from './sealed-keys.ts'

export type PostgresStoreParts = {
  /** To a database that has been migrated. Closed with the store. */
  readonly access: PgAccess
  readonly author: JournalAuthor
  readonly witness: JournalWitness
  /** What `migrateDatabase` has answered. */
  readonly migrated: Pick<Migrated, 'to' | 'waitsFor'>
}

/** Written all the time, and no caller waits until other replicas have them; for a denial a caller does. */
const routineKinds: ReadonlySet<RowKind> = new Set<RowKind>([
  'node',
  'certificate',
  'token',
  'wireguard-key',
  'key-claim',
  'overlay-address',
])

const observationsEveryMs = 5000
const probeEveryMs = 1000
const upgradeEveryMs = 1000
/**
 * Another replica that migrates, or one that starts, has done so by then, or is at it. Nobody waits while a reader is in the way of
 * an index, and what was built by then would be lost.
 */
const migrateWithin: Patience = { locks: '2s', readers: '10min' }

/** Rejects with a StoreFault where there is no primary that confirms a write; then the access stays open. */
export const openPostgresStore = async (
  core: StoreCore,
  { access, author, witness, migrated }: PostgresStoreParts,
  { name, clockToleranceMs }: Pick<LeaseSettings, 'name' | 'clockToleranceMs'>,
): Promise<Store> => {
  try {
    const schema = openSchemaInUse(migrated, core.log)
    const settings = { name, version: musterVersion, pace: usualPace, clockToleranceMs }
    const shared = await openPgReplicas(core, { access, witness, schema }, settings)
    return assemble(core, access, { author, witness, schema }, shared)
  } catch (error) {
    throw error instanceof StoreFault ? error : new StoreFault('the store does not open', error)
  }
}

const assemble = (core: StoreCore, bare: PgAccess, group: GroupParts, shared: PgReplicas): Store => {
  const { timers, log } = core
  const { author, witness, schema } = group
  const { replicas } = shared
  const health = openPgHealth(core, bare, replicas)
  const access = health.watched(bare)
  const sql = openPgSql(timers, access, replicas)
  const rows = openRowReads(sql, schema.has)
  const lists = openListQueries(sql)
  const progress = openProgress(sql)
  const observations = openObservations(core, sql, (column) => schema.has(`observation.${column}`))
  const groupListeners: ((group: CommitGroup) => void)[] = []
  const forgetPolicyOf = ({ writes }: Committed): void => {
    for (const write of writes) {
      if (write.put === 'profile') rows.forgetPolicy('profile', tableShapes.profile.key(write.value))
      if (write.put === 'domain') rows.forgetPolicy('domain', tableShapes.domain.key(write.value))
    }
  }
  const runner = openGroupRunner(core, bare, group, shared)
  const commits = openPgGroupCommit(core, runner, group, health, {
    onTouched: (touched) => touched.forEach(({ kind, key }) => rows.forgetPolicy(kind, key)),
    afterCommit: (touched) => shared.notifyOthers(touched.some(({ kind }) => !routineKinds.has(kind))),
    onGroup: (answered) => groupListeners.forEach((run) => run(answered)),
  })
  witness.onLoss(() => rows.forgetPolicies())
  // The first subscriber: the next ones read the row again.
  shared.onForeignCommit(forgetPolicyOf)
  // A step changes rows without an entry.
  schema.onUpgraded(() => rows.forgetPolicies())
  const upgrade = openUpgrade(log, access, schema, replicas, () => migrateDatabase(bare, migrateWithin))
  const stops = [
    timers.every(observationsEveryMs, () => void observations.flush()),
    timers.every(probeEveryMs, () => void health.probe()),
    timers.every(upgradeEveryMs, () => void upgrade()),
  ]

  const close = async (): Promise<void> => {
    for (const stop of stops) stop()
    await commits.finish()
    await observations.flush()
    await shared.close()
    await access.close()
  }
  let closing: Promise<void> | null = null

  return {
    get: (kind, key) => rows.get(kind, key),
    ...lists,
    list: async (kind, query) => (schema.has(kind) ? lists.list(kind, query) : []),
    countTasksOf: async (rollout) => (schema.has('task') ? lists.countTasksOf(rollout) : noTaskCounts()),
    countOpenAndFailed: async (rollout, most) =>
      schema.has('task') ? lists.countOpenAndFailed(rollout, most) : { open: 0, failed: 0 },
    countQueuedTasks: async () => (schema.has('task') ? lists.countQueuedTasks() : 0),
    countQueuedOfWorkers: async () => (schema.has('task') ? lists.countQueuedOfWorkers() : new Map()),
    commit: (change, fencingToken) =>
      standInOf(change) === null
        ? shared.commitHere(change, () => commits.commit(change, fencingToken))
        : Promise.resolve('lost-race'),
    onForeignCommit: (run) => shared.onForeignCommit(run),
    replicas,
    sealedKeys: openSealedKeys(access),
    exclusively: (run) => exclusively(timers, access, run),
    observe: (node, seen) => observations.observe(node, seen),
    observation: (node) => observations.of(node),
    rehearsedAtMs: (node) => observations.rehearsedAtMs(node),
    journal: openJournalReader(core, {
      sql,
      signer: author.signer,
      runs: openPgJournalRuns(access),
      ends: { known: () => commits.known(), ownEnd: () => null },
    }),
    // Kinds have dashes, and tables the same names without.
    forget: (livedMs) => forgetEnded(timers, sql, livedMs, (kind) => schema.has(kind)),
    ...progress,
    // As if no plane had led yet: then nothing is deleted for good.
    lived: async () => (schema.has('lived') ? progress.lived() : 0),
    addLived: async (ms) => (schema.has('lived') ? progress.addLived(ms) : undefined),
    unfinishedUpgrade: () => schema.unfinished(),
    onUpgraded: (run) => schema.onUpgraded(run),
    onCommitGroup: (run) => void groupListeners.push(run),
    fileFault: async () => null,
    trouble: () => health.trouble(),
    isDiskTrouble: () => health.isDisk(),
    // The disk belongs to the database server, which stops on its own when a flush fails.
    warnings: () => upgradeWarnings(schema.unfinished()),
    makeRoom: () => false,
    onLost: () => {},
    close: () => (closing ??= close()),
  }
}

const upgradeWarnings = (unfinished: UnfinishedUpgrade | null): readonly string[] => {
  if (unfinished === null) return []
  const { schema, newest, waitsFor, failure } = unfinished
  const soon =
    failure === null
      ? 'it changes once its indexes are built'
      : `it is tried again; the last attempt failed: ${failure}`
  const until = waitsFor.length === 0 ? soon : `waiting for ${waitsFor.join(', ')} to stop`
  return [`the upgrade is unfinished: the store has schema ${schema}, this release has ${newest}; ${until}`]
}
