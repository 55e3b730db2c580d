// Commits that arrive together share one transaction: while one group is on its way the next gathers. No caller is answered before
// the COMMIT is answered or settled.

import assert from 'node:assert/strict'
import type { Change, RowKind } from '#domain/core/change.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import { gatherCommits } from '#plane/store/commit/gather-commits.ts'
import { planCommit, type CommitPlan } from '#plane/store/commit/plan-commit.ts'
import { refusedInDoubt, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { StaleReplica, StoreFault, StoreInDoubt, UpgradeUnfinished } from '#plane/store/contract/store-errors.ts'
import type { CommitGroup, Committed, StoreCore } from '#plane/store/contract/store.ts'
import type { TroubleRecord } from '#plane/store/contract/trouble-record.ts'
import { refusedOn } from './older-rows.ts'
import { policyKinds } from './row-statements.ts'
import type { GroupRunner } from './run-group.ts'
import type { GroupParts, MemberOutcome } from './run-transaction.ts'
import type { SchemaInUse } from './schema-gate.ts'

export type PgGroupCommit = {
  commit(change: Change, fencingToken?: FencingToken): Promise<Committed | 'lost-race'>
  /** How far every chain had come, as far as acknowledged commits of this replica have seen. */
  known(): ReadonlyMap<string, number>
  /** Resolves when everything queued so far has been answered; what comes later is rejected. */
  finish(): Promise<void>
}

export type GroupListener = {
  /** Whether a group came through, and how long it took. */
  onGroup(group: CommitGroup): void
  /** Rows that changed, or that differ from what a member has read. */
  onTouched(rows: readonly TouchedRow[]): void
  /** In the turn in which the commits are answered; with the same rows. */
  afterCommit(rows: readonly TouchedRow[]): void
}

export type TouchedRow = { readonly kind: RowKind; readonly key: string }

type Outcome = Committed | 'lost-race'
type Member = {
  readonly plan: CommitPlan
  readonly fencingToken: FencingToken | null
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (fault: StoreFault) => void
}

const largestGroup = 256
/** A group that failed sooner had a trouble of its own. */
const longWaitMs = 2000

/** Closes the runner when it is finished. */
export const openPgGroupCommit = (
  core: Pick<StoreCore, 'clock' | 'timers'>,
  runner: GroupRunner,
  { witness, schema }: Pick<GroupParts, 'witness' | 'schema'>,
  health: Pick<TroubleRecord, 'failed' | 'worked'>,
  listener: GroupListener,
): PgGroupCommit => {
  const { clock } = core
  let queue: Member[] = []
  let running: Promise<void> | null = null
  let finished = false

  const enough = (): boolean => queue.length >= largestGroup || finished
  const drain = async (): Promise<void> => {
    while (queue.length > 0) {
      await new Promise<void>((resolve) => gatherCommits(core, enough, resolve))
      const group = queue.slice(0, largestGroup)
      queue = queue.slice(largestGroup)
      const sinceMs = clock.monotonicMs()
      const fault = await answer(withoutRefused(witness, group))
      // They have waited for the same database, and each has a caller that waits.
      if (fault !== null && clock.monotonicMs() - sinceMs > longWaitMs)
        for (const member of queue.splice(0)) member.reject(new StoreFault('nothing was committed', fault))
    }
  }
  const wake = (): void => {
    running ??= drain().finally(() => {
      running = null
      if (queue.length > 0) wake()
    })
  }

  /** The fault that befell all of them; null: each has its own answer. */
  const answer = async (group: readonly Member[]): Promise<StoreFault | null> => {
    if (group.length === 0) return null
    const startedMs = clock.monotonicMs()
    const tell = (lostRaces: number, failed: boolean): void =>
      listener.onGroup({ commits: group.length, lostRaces, failed, ms: clock.monotonicMs() - startedMs })
    let outcomes: readonly MemberOutcome[]
    try {
      outcomes = await runner.run(group)
    } catch (error) {
      const fault = error instanceof StoreFault ? error : new StoreFault('nothing was committed', error)
      if (!(fault instanceof StoreInDoubt)) health.failed(fault)
      for (const member of group) member.reject(fault)
      tell(0, true)
      return fault
    }
    health.worked()
    const touched = group.flatMap(({ plan }, at) => touchedBy(plan, outcomes[at] as MemberOutcome))
    listener.onTouched(touched)
    group.forEach(({ resolve, reject }, at) => {
      const outcome = outcomes[at] as MemberOutcome
      if (outcome === 'not-leading') reject(new StaleReplica('another replica leads'))
      else resolve(outcome)
    })
    if (outcomes.some((outcome) => typeof outcome !== 'string')) listener.afterCommit(touched)
    tell(outcomes.filter((outcome) => outcome === 'lost-race').length, false)
    return null
  }

  return {
    async commit(change, fencingToken) {
      if (finished) throw new StoreFault('nothing was committed', 'the store is closed')
      const plan = planCommit(change)
      refuseUnstorable(plan)
      if (schema.isUnfinished()) refuseUnknown(schema, plan)
      return new Promise<Outcome>((resolve, reject) => {
        queue.push({ plan, fencingToken: fencingToken ?? null, resolve, reject })
        wake()
      })
    },
    known: () => runner.known(),
    async finish() {
      finished = true
      while (running !== null) await running
      await runner.close()
    },
  }
}

/** What replicas of the release before would not understand. A schema is never taken back: what passes here passes later, too. */
const refuseUnknown = (schema: SchemaInUse, plan: CommitPlan): void => {
  const refused = refusedOn(schema.version(), plan)
  if (refused === null) return
  const waiting = schema.unfinished()?.waitsFor ?? []
  const whom = waiting.length === 0 ? 'replicas of an older release' : waiting.join(', ')
  throw new UpgradeUnfinished(`${refused} is new in this release, and the upgrade waits for ${whom}`)
}

/** Those that may be committed now; the others have been answered. */
const withoutRefused = (witness: JournalWitness, group: readonly Member[]): readonly Member[] =>
  group.filter(({ plan, reject }) => {
    const refused = refusedInDoubt(witness, plan.entries)
    if (refused !== null) reject(refused)
    return refused === null
  })

/** A policy row over which a member lost its race has changed: the cached one is dropped. */
const touchedBy = ({ writes, removes, reads }: CommitPlan, outcome: MemberOutcome): readonly TouchedRow[] => {
  if (outcome === 'not-leading') return []
  if (outcome === 'lost-race')
    return reads.filter(({ row }) => policyKinds.has(row)).map(({ row, key }) => ({ kind: row, key }))
  return [...writes.map(({ row }) => row), ...removes].map(({ kind, key }) => ({ kind, key }))
}

/** Text that PostgreSQL has no way to keep would fail its whole group: it is thrown back to its caller. */
const refuseUnstorable = ({ reads, writes, holdings, entries }: CommitPlan): void => {
  for (const { row, key } of reads) refuse(key, `the key of a ${row}`)
  for (const { row } of writes) {
    refuse(row.key, `the key of a ${row.kind}`)
    for (const value of row.columns) if (typeof value === 'string') refuse(value, `a column of a ${row.kind}`)
  }
  for (const { addresses } of holdings) for (const address of addresses) refuse(address, 'a hardware address')
  for (const { draft } of entries) if (draft.node !== null) refuse(draft.node, `the node of a ${draft.type} entry`)
}

const refuse = (text: string, what: string): void =>
  assert(!text.includes('\0') && text.isWellFormed(), `${what} has characters that cannot be kept`)
