// How many tasks of type `run` one operator has queued lately without a second operator. With `tasks.approveRunAbove` they count together:
// else a thousand calls for one node each would do what one call for a thousand nodes may not.

import { readOf, type ChangePart, type Row } from '#domain/core/change.ts'
import type { TaskSwitches } from '#domain/core/task-types.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type RunTally = {
  /** An operator key, or the issuer of workers: a pod that starts again is the same caller. */
  readonly of: string
  /** Newest first. */
  readonly slots: readonly { readonly atMs: number; readonly runs: number }[]
}

const countedMs = 3_600_000
/** So few that the row stays short. A run counts for at least an hour and at most this much longer. */
const slotMs = 5 * 60_000

export type TallyFacts = {
  readonly of: string
  /** Null: nothing was counted yet. */
  readonly row: Row<RunTally> | null
  readonly nowMs: number
}

/** In the last hour. What a clock that is ahead has counted, counts. */
export const recentRuns = ({ row, nowMs }: Omit<TallyFacts, 'of'>): number =>
  liveSlots(row, nowMs).reduce((sum, { runs }) => sum + runs, 0)

const liveSlots = (row: Row<RunTally> | null, nowMs: number): RunTally['slots'] =>
  (row?.value.slots ?? []).filter(({ atMs }) => atMs + slotMs + countedMs > nowMs)

/** In the commit that queues, so that of calls at once none is overlooked. */
export const tallied = (facts: TallyFacts, runs: number): ChangePart => {
  const { of, row, nowMs } = facts
  const atMs = nowMs - (nowMs % slotMs)
  const live = liveSlots(row, nowMs)
  const here = live.find((slot) => slot.atMs === atMs)?.runs ?? 0
  const slots = [{ atMs, runs: here + runs }, ...live.filter((slot) => slot.atMs !== atMs)]
  return { reads: [readOf('run-tally', of, row)], writes: [{ put: 'run-tally', value: { of, slots } }] }
}

type Limit = Pick<TaskSwitches, 'approveRunAbove'>

/** Whether so many more need another operator. */
export const needsSecond = (
  facts: Omit<TallyFacts, 'of'>,
  { approveRunAbove }: Limit,
  type: string,
  runs: number,
): boolean => type === 'run' && approveRunAbove !== null && recentRuns(facts) + runs > approveRunAbove

/** Whether so many more are counted at all. */
export const isTallied = ({ approveRunAbove }: Limit, type: string): boolean =>
  type === 'run' && approveRunAbove !== null

/** Of one task that is queued for itself. Null: it is not too many. */
export const tooManyRuns = (facts: TallyFacts, limit: Limit, type: string): Refusal | null =>
  needsSecond(facts, limit, type, 1)
    ? refuse(
        'SECOND_OPERATOR_REQUIRED',
        `${recentRuns(facts)} tasks of type run were queued by ${facts.of} within an hour, and tasks.approveRunAbove is ${limit.approveRunAbove}`,
      )
    : null
