// The embedded store: one SQLite file, one connection, one plane a folder.

import * as path from 'node:path'
import type { Clock } from '#platform/clock.ts'
import { flushFolder, makeFolder } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import type { FolderLock } from '#platform/private-folder.ts'
import type { Random } from '#platform/random.ts'
import { openDatabase, sqliteTrouble, sqliteVersion, type Database } from '#platform/sqlite.ts'
import { quickCheck } from '#platform/sqlite-check.ts'
import type { Timers } from '#platform/timers.ts'
import { musterVersion } from '#platform/version.ts'
import { lockDataFolder } from './data-folder-lock.ts'
import { forgetEnded } from './forget.ts'
import { openGroupCommit } from './group-commit.ts'
import { openHardwareTable } from './hardware-table.ts'
import { openHealth } from './health.ts'
import { openJournalReader } from './journal-reader.ts'
import { openJournalWitness, type JournalWitness } from './journal-witness.ts'
import { openJournal } from './journal.ts'
import { openLived } from './lived.ts'
import { checkSchema, migrate } from './migrations.ts'
import { openObservations } from './observations.ts'
import { openRowQueries } from './row-queries.ts'
import { openRowTables } from './row-tables.ts'
import { openSoleReplica } from './sole-replica.ts'
import { refuseOldSqlite } from './sqlite-release.ts'
import { notAStore, StoreFault, StoreRefused } from './store-errors.ts'
import type { CommitGroup, HeadSigner, Store } from './store.ts'
import { openWebhookProgress } from './webhook-progress.ts'

export type SqliteStoreDeps = {
  /** Made if need be. */
  readonly folder: string
  /** Taken already, and released with the store; left out: it is taken here. */
  readonly lock?: FolderLock
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly signer: HeadSigner
  readonly log: Log
  /** Goes into every entry; asked at each commit, so it may be decided after the store is open. */
  domainName(): string
  /** Absent: nothing is known of the journal from before. */
  readonly witness?: JournalWitness
}

const observationsEveryMs = 5000
/** A backup or a curious operator may hold the file for a moment. Waiting for them blocks everything, so not long. */
const busyMs = 500

/** Throws StoreRefused where opening can never work, StoreFault where the world is in the way. */
export const openSqliteStore = async (deps: SqliteStoreDeps): Promise<Store> => {
  const opened: (() => void)[] = []
  try {
    makeFolder(deps.folder, 0o700)
    const lock = deps.lock ?? lockDataFolder(deps.folder)
    opened.push(() => lock.release())
    refuseOldSqlite(sqliteVersion())
    const database = openDatabase(path.join(deps.folder, 'muster.db'), busyMs)
    opened.push(() => database.close())
    prepareFile(database, deps.folder)
    return assemble({ ...deps, witness: deps.witness ?? openJournalWitness() }, database, lock)
  } catch (error) {
    for (const undo of opened.toReversed()) undo()
    throw error instanceof StoreRefused ? error : new StoreFault('the store does not open', error)
  }
}

const assemble = (
  deps: SqliteStoreDeps & { readonly witness: JournalWitness },
  database: Database,
  lock: FolderLock,
): Store => {
  const rows = openRowTables(database)
  const queries = openRowQueries(database)
  const hardware = openHardwareTable(database)
  const journal = openJournal(deps, database)
  const health = openHealth(deps, database)
  const observations = openObservations(deps, database)
  const progress = openWebhookProgress(database)
  const lived = openLived(database)
  const groupListeners: ((group: CommitGroup) => void)[] = []
  const { clock, timers, witness } = deps
  const onGroup = (group: CommitGroup): void => groupListeners.forEach((run) => run(group))
  const replicas = openSoleReplica({
    name: `process ${process.pid}`,
    version: musterVersion,
    startedAtMs: clock.nowMs(),
    witness: deps.witness,
    activeNodes: async () => queries.activeNodes(),
  })
  const { isHeld } = replicas
  const commits = openGroupCommit({
    clock,
    timers,
    database,
    rows,
    hardware,
    journal,
    health,
    witness,
    isHeld,
    onGroup,
  })
  const stopTicking = deps.timers.every(observationsEveryMs, () => {
    void observations.flush()
    health.probe()
  })

  const close = async (): Promise<void> => {
    stopTicking()
    await commits.finish()
    await observations.flush()
    try {
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch (error) {
      // Nothing is lost: what was committed is in the log, and the next start finds it there.
      deps.log.warn({ err: error }, 'the write-ahead log could not be folded into the store')
    }
    database.close()
    lock.release()
  }
  let closing: Promise<void> | null = null

  return {
    get: (kind, key) => reading(() => rows.getCached(kind, key)),
    nodesByHardware: (identity) =>
      reading(() => hardware.holders(identity).flatMap((node) => rows.get('node', node) ?? [])),
    nodes: (query) => reading(() => queries.nodes(query)),
    countNodes: () => reading(() => queries.countNodes()),
    tokenById: (id) => reading(() => queries.tokenById(id)),
    tokens: (query) => reading(() => queries.tokens(query)),
    denials: () => reading(() => queries.denials()),
    profiles: () => reading(() => queries.all('profile')),
    operatorKeys: () => reading(() => queries.all('operator-key')),
    issuers: () => reading(() => queries.all('issuer')),
    alerts: (query) => reading(() => queries.alerts(query)),
    alertById: (id) => reading(() => queries.alertById(id)),
    list: (kind, query) => reading(() => queries.list(kind, query)),
    commit: (change) => commits.commit(change),
    // There is no other.
    onForeignCommit: () => {},
    replicas,
    sealedKeys: null,
    exclusively: (run) => run(),
    observe: (node, seen) => observations.observe(node, seen),
    observation: (node) => reading(() => observations.of(node)),
    rehearsedAtMs: (node) => reading(() => observations.rehearsedAtMs(node)),
    journal: openJournalReader(deps, journal),
    forget: (livedMs) => forgetEnded({ timers: deps.timers, database }, livedMs),
    lived: () => reading(() => lived.read()),
    addLived: async (ms) => lived.add(ms),
    webhookProgress: () => reading(() => progress.read()),
    keepWebhookProgress: async (now) => progress.keep(now),
    onCommitGroup: (run) => void groupListeners.push(run),
    fileFault: () => quickCheck(path.join(deps.folder, 'muster.db')),
    trouble: () => health.trouble(),
    close: () => (closing ??= close()),
  }
}

/** Reads run in the turn they are asked in, between two groups: they see what is committed and nothing else. */
const reading = async <T>(read: () => T): Promise<T> => {
  try {
    return read()
  } catch (error) {
    throw new StoreFault('the store cannot be read', error)
  }
}

const prepareFile = (database: Database, folder: string): void => {
  try {
    checkSchema(database)
    // FULL: a commit is on the disk before it is answered. The limit gives a WAL that once grew its room back.
    database.exec(`
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1;
      PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY`)
    migrate(database)
    flushFolder(folder)
  } catch (error) {
    throw sqliteTrouble(error) === 'not-a-database' ? notAStore('it is not a SQLite database') : error
  }
}
