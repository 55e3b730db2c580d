// The embedded store: one SQLite file, one connection, one plane a folder.

import * as path from 'node:path'
import type { NodeId } from '#domain/core/node.ts'
import { standInOf } from '#domain/core/change.ts'
import { flushFolder, makeFolder } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import type { FolderLock } from '#platform/sqlite-lock.ts'
import { openDatabase, sqliteTrouble, sqliteVersion, type Database } from '#platform/sqlite.ts'
import { quickCheck } from '#platform/sqlite-check.ts'
import { musterVersion } from '#platform/this-process.ts'
import { lockDataFolder } from './data-folder-lock.ts'
import { openDiskReserve, type DiskReserve } from './disk-reserve.ts'
import { openGroupCommit } from './group-commit.ts'
import { openHardwareTable } from '#plane/store/commit/hardware-table.ts'
import { openHealth, ReserveInUse } from './health.ts'
import type { JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openSqliteJournalRuns } from './journal-runs.ts'
import { openJournal } from './journal.ts'
import { checkSchema, migrate } from './migrations.ts'
import { openRowTables } from '#plane/store/commit/row-tables.ts'
import { openSoleReplica } from './sole-replica.ts'
import { openSqliteSql } from './sqlite-sql.ts'
import { refuseOldSqlite } from './sqlite-release.ts'
import { notAStore, StoreFault, StoreRefused, type StoreLost } from '#plane/store/contract/store-errors.ts'
import type { CommitGroup, JournalAuthor, Store, StoreCore } from '#plane/store/contract/store.ts'
import { forgetEnded } from '#plane/store/sql/forget.ts'
import { openJournalReader } from '#plane/store/sql/journal-reader.ts'
import { openListQueries } from '#plane/store/sql/list-queries.ts'
import { openObservations } from '#plane/store/sql/observations.ts'
import { openProgress } from '#plane/store/sql/progress.ts'

export type SqliteStoreParts = {
  /** Made if need be. */
  readonly folder: string
  /** Taken already, and released with the store; left out: it is taken here. */
  readonly lock?: FolderLock
  readonly author: JournalAuthor
  readonly witness: JournalWitness
}

const activeNodes = { name: 'active-nodes', text: "SELECT key FROM node WHERE membership = 'active'" }

/**
 * A page that is written by many commits in a row is folded into the database once. Of 4 KiB each: the log takes 16 MiB before it is
 * folded, and begins anew.
 */
const foldEveryPages = 4000
/**
 * Enough for the inner pages of every table and index of a large fleet; the system keeps the leaves. Not more: a commit that has split
 * a page makes SQLite look at every page of its cache.
 */
const cacheKiB = 8192

const observationsEveryMs = 5000
const probeEveryMs = 1000
/** A backup or a curious operator may hold the file for a moment. Waiting for them blocks everything, so not long. */
const busyMs = 500

/** Throws StoreRefused where opening can never work, StoreFault where the world is in the way. */
export const openSqliteStore = async (core: StoreCore, parts: SqliteStoreParts): Promise<Store> => {
  const { folder } = parts
  const opened: (() => void)[] = []
  try {
    makeFolder(folder, 0o700)
    const lock = parts.lock ?? lockDataFolder(folder)
    opened.push(() => lock.release())
    refuseOldSqlite(sqliteVersion())
    const reserve = openDiskReserve(folder, core.log, core.clock)
    const database = openInReserve(core.log, folder, reserve)
    opened.push(() => database.close())
    return assemble(core, parts, database, lock, reserve)
  } catch (error) {
    for (const undo of opened.toReversed()) undo()
    throw error instanceof StoreRefused ? error : new StoreFault('the store does not open', error)
  }
}

/** A plane that cannot start cuts no node off: opening uses the reserve, too. */
const openInReserve = (log: Log, folder: string, reserve: DiskReserve): Database => {
  for (;;) {
    const database = openDatabase(path.join(folder, 'muster.db'), busyMs)
    try {
      prepareFile(database, folder, log)
      return database
    } catch (error) {
      database.close()
      if (sqliteTrouble(error) !== 'full' || !reserve.release()) throw error
    }
  }
}

const assemble = (
  core: StoreCore,
  { folder, author, witness }: SqliteStoreParts,
  database: Database,
  lock: FolderLock,
  reserve: DiskReserve,
): Store => {
  const rows = openRowTables(database)
  let lost: StoreLost | null = null
  /** Writes beside the commits wait for room, and for a disk that can be relied on. */
  const mayWrite = (): boolean => lost === null && !reserve.spent()
  const sql = openSqliteSql(database, () => {
    if (!mayWrite()) throw new StoreFault('nothing was written', lost ?? new ReserveInUse())
  })
  const hardware = openHardwareTable(database)
  const journal = openJournal(core, author, witness, database)
  const health = openHealth(core, reserve, database)
  const observations = openObservations(core, sql)
  const groupListeners: ((group: CommitGroup) => void)[] = []
  const { timers } = core
  const onGroup = (group: CommitGroup): void => groupListeners.forEach((run) => run(group))
  const replicas = openSoleReplica(
    { name: `process ${process.pid}`, version: musterVersion, startedAtMs: core.clock.nowMs() },
    witness,
    async () => (await sql.read(activeNodes)).map((row) => row['key'] as NodeId),
  )
  const lostListeners: ((lost: Error) => void)[] = []
  const onLost = (fault: StoreLost): void => {
    lost = fault
    core.log.error({ err: fault }, 'a flush failed: nothing is committed any more, and this plane stops')
    lostListeners.forEach((run) => run(fault))
  }
  const tables = { database, rows, hardware, journal, replicas }
  const commits = openGroupCommit(core, tables, { witness, health, reserve }, { onGroup, onLost })
  const stops = [
    timers.every(observationsEveryMs, () => {
      if (mayWrite()) void observations.flush()
    }),
    timers.every(probeEveryMs, () => {
      if (lost === null) health.probe()
    }),
  ]

  const close = async (): Promise<void> => {
    for (const stop of stops) stop()
    await commits.finish()
    if (mayWrite()) await observations.flush()
    try {
      // The log keeps its room on a full disk.
      if (lost === null) database.exec(`PRAGMA wal_checkpoint(${reserve.spent() ? 'PASSIVE' : 'TRUNCATE'})`)
    } catch (error) {
      // Nothing is lost: what was committed is in the log, and the next start finds it there.
      core.log.warn({ err: error }, 'the write-ahead log could not be folded into the store')
    }
    database.close()
    lock.release()
  }
  let closing: Promise<void> | null = null
  const known = (): ReadonlyMap<string, number> => {
    const head = journal.head()
    return new Map(head === null ? [] : [[head.chain, head.sequence]])
  }

  return {
    get: (kind, key) => reading(() => rows.getCached(kind, key)),
    ...openListQueries(sql),
    commit: (change) => (standInOf(change) === null ? commits.commit(change) : Promise.resolve('lost-race')),
    // There is no other.
    onForeignCommit: () => {},
    replicas,
    sealedKeys: null,
    exclusively: (run) => run(),
    observe: (node, seen) => observations.observe(node, seen),
    observation: (node) => observations.of(node),
    rehearsedAtMs: (node) => observations.rehearsedAtMs(node),
    journal: openJournalReader(core, {
      sql,
      signer: author.signer,
      runs: openSqliteJournalRuns(sql),
      ends: { known, ownEnd: () => journal.head() },
    }),
    forget: async (livedMs) => (mayWrite() ? forgetEnded(timers, sql, livedMs) : 0),
    ...openProgress(sql),
    // The one plane on the file has brought it up to date.
    unfinishedUpgrade: () => null,
    onUpgraded: () => {},
    onCommitGroup: (run) => void groupListeners.push(run),
    fileFault: () => quickCheck(path.join(folder, 'muster.db')),
    trouble: () => health.trouble(),
    isDiskTrouble: () => health.isDisk(),
    warnings: () => [reserve.warning()].filter((warning) => warning !== null),
    makeRoom: () => reserve.release(),
    onLost(run) {
      if (lost === null) lostListeners.push(run)
      else run(lost)
    },
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

const prepareFile = (database: Database, folder: string, log: Log): void => {
  try {
    checkSchema(database)
    // FULL: a commit is on the disk before it is answered. The limit gives a WAL that once grew its room back.
    database.exec(`
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1;
      PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = ${foldEveryPages};
      PRAGMA cache_size = -${cacheKiB}; PRAGMA temp_store = MEMORY`)
    foldLog(database, log)
    migrate(database)
    flushFolder(folder)
  } catch (error) {
    throw sqliteTrouble(error) === 'not-a-database' ? notAStore('it is not a SQLite database') : error
  }
}

/**
 * What a process before this one wrote is read from memory of the system, also where its flush failed and the disk does not
 * have it. Written into the database and flushed, it is there; else what is committed next could be lost behind it.
 */
const foldLog = (database: Database, log: Log): void => {
  try {
    database.exec('PRAGMA wal_checkpoint(RESTART)')
  } catch (error) {
    if (sqliteTrouble(error) !== 'full') throw error
    log.warn({ err: error }, 'the write-ahead log stays as it is: there is no room to fold it into the store')
  }
}
