// The store that planes share: one PostgreSQL, a replica a process.

import { type RowKind, standInOf } from '#domain/core/change.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Random } from '#platform/random.ts'
import type { Timers } from '#platform/timers.ts'
import { musterVersion } from '#platform/this-process.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { openJournalWitness, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { CommitGroup, Committed, HeadSigner, Store, UnfinishedUpgrade } from '#plane/store/contract/store.ts'
import { forgetEnded } from '#plane/store/sql/forget.ts'
import { openJournalReader } from '#plane/store/sql/journal-reader.ts'
import { openListQueries } from '#plane/store/sql/list-queries.ts'
import { openObservations } from '#plane/store/sql/observations.ts'
import { openProgress } from '#plane/store/sql/progress.ts'
import { exclusively } from './exclusively.ts'
import { openPgGroupCommit } from './group-commit.ts'
import { openPgHealth } from './health.ts'
import { openPgJournalRuns } from './journal-runs.ts'
import { openPgReplicas, type PgReplicas } from './open-pg-replicas.ts'
import type { PgAccess } from './pg-access.ts'
import { openPgSql } from './pg-sql.ts'
import { openRowReads } from './row-reads.ts'
import { migrateDatabase, type Migrated } from './run-migrations.ts'
import { openSchemaInUse, openUpgrade, type SchemaInUse } from './schema-gate.ts'
import { newestSchema } from './schema-since.ts'
import { openSealedKeys } from './sealed-keys.ts'

export type PostgresStoreDeps = {
  /** To a database that has been migrated. Closed with the store. */
  readonly access: PgAccess
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly signer: HeadSigner
  readonly log: Log
  /** Goes into every entry; asked at each commit, so it may be decided after the store is open. */
  domainName(): string
  /** Host and process, for people. */
  readonly replicaName: string
  /** Absent: nothing is known of the journal from before. */
  readonly witness?: JournalWitness
  /** How far this machine's clock may be from the database's; left out: they are not compared. */
  readonly clockToleranceMs?: number
  /** What `migrateDatabase` has answered; absent: the schema is the newest. */
  readonly migrated?: Pick<Migrated, 'to' | 'waitsFor'>
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
/** Another replica that migrates, or one that starts, has done so by then, or is at it. */
const migrateWithin = '2s'

/** Rejects with a StoreFault where there is no primary that confirms a write; then the access stays open. */
export const openPostgresStore = async (deps: PostgresStoreDeps): Promise<Store> => {
  const witness = deps.witness ?? openJournalWitness()
  try {
    const schema = openSchemaInUse(deps.migrated ?? { to: newestSchema, waitsFor: [] }, deps.log)
    const shared = await openPgReplicas({ ...deps, witness, schema, name: deps.replicaName, version: musterVersion })
    return assemble({ ...deps, witness, schema }, shared)
  } catch (error) {
    throw error instanceof StoreFault ? error : new StoreFault('the store does not open', error)
  }
}

type Parts = PostgresStoreDeps & { readonly witness: JournalWitness; readonly schema: SchemaInUse }

const assemble = (deps: Parts, shared: PgReplicas): Store => {
  const { timers, log, clock, schema } = deps
  const { replicas } = shared
  const health = openPgHealth({ access: deps.access, clock, log, self: () => replicas.self })
  const access = health.watched(deps.access)
  const sql = openPgSql({ access, timers, self: () => replicas.self })
  const rows = openRowReads(sql, schema.has)
  const lists = openListQueries(sql)
  const progress = openProgress(sql)
  const observations = openObservations({ sql, timers, log })
  const groupListeners: ((group: CommitGroup) => void)[] = []
  const forgetPolicyOf = ({ writes }: Committed): void => {
    for (const write of writes) {
      if (write.put === 'profile') rows.forgetPolicy('profile', tableShapes.profile.key(write.value))
      if (write.put === 'domain') rows.forgetPolicy('domain', tableShapes.domain.key(write.value))
    }
  }
  const commits = openPgGroupCommit({
    ...deps,
    health,
    self: () => shared.self(),
    onPlaceMissing: (why) => shared.onPlaceMissing(why),
    onTouched: (touched) => touched.forEach(({ kind, key }) => rows.forgetPolicy(kind, key)),
    afterCommit: (touched) => shared.notifyOthers(touched.some(({ kind }) => !routineKinds.has(kind))),
    onGroup: (group) => groupListeners.forEach((run) => run(group)),
  })
  deps.witness.onLoss(() => rows.forgetPolicies())
  // The first subscriber: the next ones read the row again.
  shared.onForeignCommit(forgetPolicyOf)
  // A step changes rows without an entry.
  schema.onUpgraded(() => rows.forgetPolicies())
  const upgrade = openUpgrade({
    ...{ access, schema, log },
    leads: () => replicas.leadership() !== null,
    migrate: () => migrateDatabase(deps.access, migrateWithin),
  })
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
    commit: (change, fencingToken) =>
      standInOf(change) === null
        ? shared.commitHere(change, () => commits.commit(change, fencingToken))
        : Promise.resolve('lost-race'),
    onForeignCommit: (run) => shared.onForeignCommit(run),
    replicas,
    sealedKeys: openSealedKeys(access),
    exclusively: (run) => exclusively({ access, timers }, run),
    observe: (node, seen) => observations.observe(node, seen),
    observation: (node) => observations.of(node),
    rehearsedAtMs: (node) => observations.rehearsedAtMs(node),
    journal: openJournalReader({
      ...deps,
      sql,
      runs: openPgJournalRuns(access),
      known: () => commits.known(),
      ownEnd: () => null,
    }),
    forget: (livedMs) => forgetEnded({ sql, timers }, livedMs),
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
  const soon = failure === null ? 'it changes in a moment' : `it is tried again; the last attempt failed: ${failure}`
  const until = waitsFor.length === 0 ? soon : `waiting for ${waitsFor.join(', ')} to stop`
  return [`the upgrade is unfinished: the store has schema ${schema}, this release has ${newest}; ${until}`]
}
