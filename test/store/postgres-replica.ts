// One of several replicas over one real PostgreSQL, in the process of the test: its leases are short, its clock can be
// set, and everything between it and the database can go wrong.

import type { Change } from '#domain/core/change.ts'
import { openJournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openPgGroupCommit } from '#plane/store/postgres/group-commit.ts'
import { openPgReplicas, type PgReplicas } from '#plane/store/postgres/open-pg-replicas.ts'
import { openPgAccess, type PgAccess } from '#plane/store/postgres/pg-access.ts'
import { usualPace, type ReplicaPace } from '#plane/store/postgres/replica-pace.ts'
import { migrateDatabase } from '#plane/store/postgres/run-migrations.ts'
import { openGroupRunner } from '#plane/store/postgres/run-group.ts'
import { openSchemaInUse } from '#plane/store/postgres/schema-gate.ts'
import { newestSchema } from '#plane/store/postgres/schema-since.ts'
import type { FencingToken, Standing } from '#plane/store/contract/replicas.ts'
import type { Committed, HeadSigner } from '#plane/store/contract/store.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import type { PgConnection, PostgresTarget } from '#platform/postgres.ts'
import { systemRandom } from '#platform/random.ts'
import { musterVersion } from '#platform/this-process.ts'
import { systemTimers } from '#platform/timers.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { startFaultProxy, type FaultProxy } from '../process/fault-proxy.ts'
import { postgresDatabase, type TestDatabase } from '../process/postgres-server.ts'
import { makeSigner } from './harness.ts'

export type TestReplica = PgReplicas & {
  commit(change: Change, fencingToken?: FencingToken): Promise<Committed | 'lost-race'>
  /** The bare commit, of which the feed knows nothing. */
  commitUnpublished(change: Change): Promise<Committed | 'lost-race'>
  /** What it was told of others, oldest first. */
  readonly published: readonly Committed[]
  readonly standings: readonly Standing['kind'][]
  /** Null: it no longer led. */
  readonly led: readonly (number | null)[]
  readonly access: PgAccess
}

export type ReplicaOptions = {
  readonly clock?: Clock
  readonly pace?: ReplicaPace
  readonly target?: PostgresTarget
}

/** A few times as quick as usual, and no quicker: a busy machine loses no lease. */
export const quickPace: ReplicaPace = {
  ...usualPace,
  leaseMs: 4500,
  mostBehindMs: 3000,
  renewEveryMs: 200,
  answerWithinMs: 700,
  judgeEveryMs: 20,
  releaseEveryMs: 40,
  holdWithinMs: 3000,
  forgetEveryMs: 200,
  forgetAfterMs: 500,
}

export type ReplicaSite = {
  readonly database: TestDatabase
  /** For the test itself. */
  readonly connection: PgConnection
  readonly signer: HeadSigner
  open(options?: ReplicaOptions): Promise<TestReplica>
  /** A replica that reaches the database through a proxy of its own. */
  openBehindProxy(options?: ReplicaOptions): Promise<TestReplica & { readonly proxy: FaultProxy }>
}

export const replicaSite = async (t: Scope, given?: TestDatabase): Promise<ReplicaSite> => {
  const database = given ?? (await postgresDatabase(t))
  const connection = await database.connect()
  const signer = makeSigner()
  await migrateDatabase({ connect: () => database.connect() })
  const open = (options: ReplicaOptions = {}): Promise<TestReplica> =>
    openReplica(t, signer, { target: database.target, ...options })
  return {
    database,
    connection,
    signer,
    open,
    async openBehindProxy(options) {
      const proxy = await startFaultProxy(t, { host: '127.0.0.1', port: Number(database.env.PGPORT) })
      const target = { ...database.target, hosts: [{ host: '127.0.0.1', port: proxy.port }] }
      return { ...(await open({ ...options, target })), proxy }
    },
  }
}

const openReplica = async (
  t: Scope,
  signer: HeadSigner,
  { clock = systemClock, pace = quickPace, target }: ReplicaOptions & { readonly target: PostgresTarget },
): Promise<TestReplica> => {
  const given = { clock, timers: systemTimers, random: systemRandom, log: silentLog }
  const access = openPgAccess(given, target)
  cleanup(t, () => access.close())
  const witness = openJournalWitness()
  const schema = openSchemaInUse({ to: newestSchema, waitsFor: [] }, silentLog)
  const settings = { name: 'test', version: musterVersion, pace, clockToleranceMs: Infinity }
  const shared = await openPgReplicas(given, { access, witness, schema }, settings)
  const group = { author: { signer, domainName: () => 'test.example' }, witness, schema }
  const runner = openGroupRunner(given, access, group, shared)
  const health = { failed: () => {}, worked: () => {} }
  const commits = openPgGroupCommit(given, runner, group, health, {
    onGroup: () => {},
    onTouched: () => {},
    afterCommit: () => shared.notifyOthers(true),
  })
  const published: Committed[] = []
  const standings: Standing['kind'][] = [shared.replicas.standing().kind]
  const led: (number | null)[] = []
  shared.onForeignCommit((committed) => void published.push(committed))
  shared.replicas.onStanding(({ kind }) => void standings.push(kind))
  shared.replicas.onLeadership((fencingToken) => void led.push(fencingToken?.number ?? null))
  let closing: Promise<void> | null = null
  const close = async (): Promise<void> => {
    await commits.finish()
    await shared.close()
  }
  const replica: TestReplica = {
    ...shared,
    commit: (change, fencingToken) => shared.commitHere(change, () => commits.commit(change, fencingToken)),
    commitUnpublished: (change) => commits.commit(change),
    published,
    standings,
    led,
    access,
    close: () => (closing ??= close()),
  }
  cleanup(t, () => replica.close())
  return replica
}
