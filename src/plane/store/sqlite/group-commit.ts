// Commits that arrive together share one transaction and one fsync. A group runs in one turn, so nothing else of this
// process is ever seen between its first statement and its COMMIT, and no caller is answered before that.

import type { Change, Write } from '#domain/core/change.ts'
import { sqliteTrouble, type Database } from '#platform/sqlite.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { gatherCommits } from '#plane/store/commit/gather-commits.ts'
import type { HardwareTable } from '#plane/store/commit/hardware-table.ts'
import { ReserveInUse, type Health } from './health.ts'
import type { Journal, JournalGroup } from './journal.ts'
import { refusedInDoubt, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { inPlaceOf, planCommit, type CommitPlan, type PlannedWrite } from '#plane/store/commit/plan-commit.ts'
import type { RowTables } from '#plane/store/commit/row-tables.ts'
import { StoreFault, StoreInDoubt, StoreLost } from '#plane/store/contract/store-errors.ts'
import type { CommitGroup, Committed, StoreCore } from '#plane/store/contract/store.ts'
import type { SoleReplica } from './sole-replica.ts'
import { transact } from './transact.ts'

export type GroupCommit = {
  commit(change: Change): Promise<Committed | 'lost-race'>
  /** Resolves when everything queued so far has been answered; what comes later is rejected. */
  finish(): Promise<void>
}

/** What a group of commits is judged by and written to. */
export type GroupTables = {
  readonly database: Database
  readonly rows: RowTables
  readonly hardware: HardwareTable
  readonly journal: Journal
  readonly replicas: Pick<SoleReplica, 'isHeld'>
}

/** What decides whether a group may be written at all. */
export type GroupGuards = {
  readonly witness: JournalWitness
  readonly health: Health
  readonly reserve: DiskReserve
}

export type GroupListener = {
  onGroup(group: CommitGroup): void
  /** Nothing is committed after this. */
  onLost(lost: StoreLost): void
}

type Outcome = Committed | 'lost-race'
type Member = {
  readonly plan: CommitPlan
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (fault: StoreFault) => void
}

/** Bounds how long a group keeps the event loop to itself. */
const largestGroup = 512

export const openGroupCommit = (
  core: Pick<StoreCore, 'clock' | 'timers'>,
  tables: GroupTables,
  { witness, health, reserve }: GroupGuards,
  listener: GroupListener,
): GroupCommit => {
  const { clock, timers } = core
  let queue: Member[] = []
  let finished: (() => void) | null = null
  let lost: StoreLost | null = null

  /** Null, or why nothing more may be committed by this process. */
  const answer = (group: readonly Member[]): StoreLost | null => {
    if (group.length === 0) return null
    const inReserve = reserve.spent()
    const admitted = inReserve ? group.filter(({ plan }) => plan.cutOff) : group
    const startedMs = clock.monotonicMs()
    const tell = (lostRaces: number, failed: boolean): void =>
      listener.onGroup({ commits: group.length, lostRaces, failed, ms: clock.monotonicMs() - startedMs })
    const rejectAll = (members: readonly Member[], fault: StoreFault): void =>
      members.forEach(({ reject }) => reject(fault))
    if (inReserve) {
      const others = group.filter(({ plan }) => !plan.cutOff)
      rejectAll(others, new StoreFault('nothing was committed', new ReserveInUse()))
      if (admitted.length === 0) {
        tell(0, true)
        return null
      }
    }
    let members = admitted
    let outcomes: readonly Outcome[]
    try {
      try {
        outcomes = runGroup(tables, members)
      } catch (error) {
        if (sqliteTrouble(error) !== 'full' || !members.some(({ plan }) => plan.cutOff)) throw error
        // There is no room: only the cut-offs among them get the reserve.
        health.failed(error)
        const others = members.filter(({ plan }) => !plan.cutOff)
        rejectAll(others, new StoreFault('nothing was committed', error))
        members = members.filter(({ plan }) => plan.cutOff)
        outcomes = runInReserve(reserve, tables, members, error)
      }
    } catch (error) {
      if (error instanceof StoreInDoubt) {
        tell(0, true)
        // Noticed by this group, and only once: a revocation among them is committed now, not when it is asked for again.
        return answer(withoutRefused(witness, members))
      }
      health.failed(error)
      const flushFailed = sqliteTrouble(error) === 'flush' ? new StoreLost(error) : null
      rejectAll(members, flushFailed ?? new StoreFault('nothing was committed', error))
      tell(0, true)
      if (flushFailed !== null) listener.onLost(flushFailed)
      return flushFailed
    }
    if (reserve.spent()) reuseLog(tables.database)
    else health.worked()
    members.forEach((member, index) => member.resolve(outcomes[index] as Outcome))
    tell(outcomes.filter((outcome) => outcome === 'lost-race').length, false)
    return null
  }

  const next = (): void => {
    const group = queue.slice(0, largestGroup)
    queue = queue.slice(largestGroup)
    lost ??= answer(withoutRefused(witness, group))
    if (lost !== null) for (const member of queue.splice(0)) member.reject(lost)
    if (queue.length > 0) timers.soon(next)
    else finished?.()
  }
  const enough = (): boolean => queue.length >= largestGroup || finished !== null

  return {
    async commit(change) {
      if (finished !== null) throw new StoreFault('nothing was committed', 'the store is closed')
      if (lost !== null) throw lost
      const plan = planCommit(change)
      return new Promise<Outcome>((resolve, reject) => {
        queue.push({ plan, resolve, reject })
        if (queue.length === 1) gatherCommits(core, enough, next)
      })
    },
    finish: () =>
      new Promise((resolve) => {
        finished = resolve
        if (queue.length === 0) resolve()
      }),
  }
}

/** Those that may be committed now; the others have been answered. */
const withoutRefused = (witness: JournalWitness, group: readonly Member[]): readonly Member[] =>
  group.filter(({ plan, reject }) => {
    const refused = refusedInDoubt(witness, plan.entries)
    if (refused !== null) reject(refused)
    return refused === null
  })

/** Frees a part of the reserve and tries again, until it fits or nothing is left of it. */
const runInReserve = (
  reserve: DiskReserve,
  tables: GroupTables,
  group: readonly Member[],
  full: unknown,
): readonly Outcome[] => {
  let fault = full
  while (reserve.release()) {
    try {
      return runGroup(tables, group)
    } catch (error) {
      if (sqliteTrouble(error) !== 'full') throw error
      fault = error
    }
  }
  throw fault
}

/** The next commit then begins at the start of the log, and needs no additional room. */
const reuseLog = (database: Database): void => {
  try {
    database.exec('PRAGMA wal_checkpoint(PASSIVE)')
  } catch {
    // The database has to grow for it, and there is no room: the next commit is appended, in the reserve.
  }
}

/**
 * A savepoint makes SQLite copy every page a member touches: nearly half the cost of a commit. Unique values collide
 * rarely, so a group is tried without them first, and once more with them when one did.
 */
const runGroup = (tables: GroupTables, group: readonly Member[]): readonly Outcome[] => {
  try {
    return runTransaction(tables, group, (write) => write())
  } catch (error) {
    if (!(error instanceof UniqueTaken)) throw error
    return runTransaction(tables, group, (write) => inSavepoint(tables.database, write))
  }
}

type Guard = (write: () => readonly Write[]) => readonly Write[] | 'lost-race'

const runTransaction = (tables: GroupTables, group: readonly Member[], guard: Guard): readonly Outcome[] => {
  const [written, outcomes] = transact(tables.database, () => {
    const entries = tables.journal.startGroup()
    const each = group.map((member) => runMember(tables, entries, member.plan, guard))
    entries.signHead()
    return [entries, each] as const
  })
  written.committed()
  return outcomes
}

/** Earlier members of the group have written already: a later one that read the same rows has lost to them. */
const runMember = (tables: GroupTables, entries: JournalGroup, plan: CommitPlan, guard: Guard): Outcome => {
  for (const read of plan.reads) if (tables.rows.version(read.row, read.key) !== read.version) return 'lost-race'
  if (plan.unheld !== null && tables.replicas.isHeld(plan.unheld)) return 'lost-race'
  if (plan.unused.some((group) => tables.rows.isUsed(group))) return 'lost-race'
  const writes = guard(() => applyWrites(tables, plan))
  if (writes === 'lost-race') return 'lost-race'
  return { kind: 'committed', origin: 'here', writes, entries: entries.append(plan.entries) }
}

const applyWrites = (tables: GroupTables, plan: CommitPlan): readonly Write[] => {
  try {
    const writes = plan.writes.map((planned) => applyWrite(tables.rows, planned))
    for (const { kind, key } of plan.removes) tables.rows.remove(kind, key)
    tables.hardware.assign(plan.holdings)
    if (plan.soleTags.some((tag) => tables.rows.isSharedTag(tag))) throw new UniqueTaken()
    return writes
  } catch (error) {
    throw sqliteTrouble(error) === 'unique' ? new UniqueTaken() : error
  }
}

/** By a value or a tag. Not the journal's own unique columns: a clash there is a fault, not a race. */
class UniqueTaken extends Error {}

const inSavepoint = (database: Database, write: () => readonly Write[]): readonly Write[] | 'lost-race' => {
  database.exec('SAVEPOINT member')
  try {
    const writes = write()
    database.exec('RELEASE member')
    return writes
  } catch (error) {
    if (!(error instanceof UniqueTaken)) throw error
    database.exec('ROLLBACK TO member; RELEASE member')
    return 'lost-race'
  }
}

/** The write with its final value: what is published must not undo what was kept. */
const applyWrite = (rows: RowTables, { write, row, rule }: PlannedWrite): Write => {
  switch (rule.kind) {
    case 'after':
      rows.put(row, rule.version, rule.next)
      return write
    case 'keep-first':
      if (rows.version(row.kind, row.key) === 0) rows.put(row, 0, 1)
      return write
    case 'keep-longer': {
      const kept = rows.get('denial', row.key)
      if (kept === null) {
        rows.put(row, 0, 1)
        return write
      }
      const longer = inPlaceOf(kept.value, rule.denial)
      if (longer === null) return { put: 'denial', value: kept.value }
      rows.put(longer.row, kept.version, kept.version + 1)
      return longer.write
    }
  }
}
