// Rollouts at the leader: it makes the next tasks while there is room, holds a rollout that fails too often, and ends what waits of one
// that was cancelled. A leader that dies in the middle is followed by one that finds the same tasks, since their ids are derived.

import { forgedWords, type Attribution, type Row } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  advanced,
  decideCancelRollout,
  decideResumeRollout,
  finished,
  held,
  mostFailuresOf,
  nextStep,
  rolloutNodesKey,
  settled,
  stalled,
  type Rollout,
  type RolloutDecided,
  type RolloutUnchanged,
} from '#domain/tasks/rollout.ts'
import { mostQueuedOfNode } from '#domain/tasks/task.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { withStore, type Core, type FlowCore } from '#plane/core/core.ts'
import { pages } from '#plane/core/pages.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { turn } from '#platform/timers.ts'
import { openQueueLength, type QueueLength } from './queue-length.ts'
import { cancelTask, queueTask } from './queue-task.ts'
import { applierOnRecord, queuerOnRecord } from './queuers.ts'

const everyMs = 1000
/** Rollouts that are read at once. */
const page = 100
const cancelledAtOnce = 100
const madeAtOnce = 16

const bySystem = { actor: 'system:tasks', source: null, correlation: null } as const

export const openRolloutUpkeep = (core: Core): UpkeepTask => ({
  name: 'rollouts',
  where: 'leader',
  everyMs,
  async run(asLeader) {
    const leading = withStore(core, asLeader)
    const queueLength = openQueueLength(leading)
    // All of them: one that is held may stay for days, and must not keep later ones from going on.
    const open = pages({
      limit: page,
      read: (after: string | null) => leading.store.list('task-rollout', { order: 'open', after, limit: page }),
      placeOf: ({ value }) => value.id,
    })
    let reached = ''
    for await (const rows of open) {
      for (const { value } of rows) {
        await goOn(leading, queueLength, value.id)
        await turn(leading.timers)
      }
      const last = rows.at(-1)?.value.id
      // A row that no plane wrote may have any id: it must not lead back to where this began.
      if (last === undefined || last <= reached) return
      reached = last
    }
  },
})

const goOn = async (core: Core, queueLength: QueueLength, id: string): Promise<void> => {
  const { store, clock } = core
  const row = await store.get('task-rollout', id)
  if (row === null) return
  const step = nextStep({
    rollout: row.value,
    counts: await store.countOpenAndFailed(id, mostFailuresOf(row.value)),
    keyEnded: await keyEnded(core, row.value),
    nowMs: clock.nowMs(),
  })
  switch (step.kind) {
    case 'wait':
      return
    case 'make': {
      const listed = await store.get('rollout-nodes', rolloutNodesKey({ rollout: id, part: step.part }))
      if (listed === null || listed.value.forged)
        return write(core, id, (facts) => decideCancelRollout(facts, `the list of its nodes: ${forgedWords}`))
      return makeTasks(core, queueLength, row, listed.value.nodes.slice(step.from, step.from + step.count))
    }
    case 'hold':
      return write(core, id, (facts) => held(facts, step.why))
    case 'finish':
      return write(core, id, finished)
    case 'give-up':
      return write(core, id, (facts) => decideCancelRollout(facts, step.why))
    case 'settle':
      await cancelWaiting(core, row.value)
      return write(core, id, settled)
  }
}

/** Why nothing is queued any more in the name of who planned it, or by order of who applied it; null: it is. */
const keyEnded = async (core: Core, { forged, queuedBy, appliedBy }: Rollout): Promise<string | null> => {
  // It may lack either of them.
  if (forged === true) return forgedWords
  const { caller } = await queuerOnRecord(core, queuedBy)
  if (typeof caller === 'string') return caller
  if (appliedBy.id === queuedBy.id) return null
  const applier = await applierOnRecord(core, appliedBy)
  return typeof applier.caller === 'string' ? applier.caller : null
}

type Facts = { readonly rollout: Row<Rollout>; readonly by: Attribution; readonly nowMs: number }

/** Decided on the row as it is by then: an operator may have cancelled or resumed it. */
const write = async (
  core: FlowCore,
  id: string,
  decide: (facts: Facts) => RolloutDecided | RolloutUnchanged | Refusal,
): Promise<void> => {
  await commitDecision(core, async () => {
    const rollout = await core.store.get('task-rollout', id)
    return rollout === null
      ? refuse('ROLLOUT_NOT_FOUND', id)
      : decide({ rollout, by: bySystem, nowMs: core.clock.nowMs() })
  })
}

type Made =
  | { readonly kind: 'made' }
  | { readonly kind: 'refused'; readonly node: NodeId; readonly why: string }
  /** It has to wait, whatever node it is for. `why` null: not for long. */
  | { readonly kind: 'stopped'; readonly why: string | null }

/** The tasks are in the store before the row says that they are. A row that was written meanwhile keeps further ones from being made. */
const makeTasks = async (
  core: Core,
  queueLength: QueueLength,
  row: Row<Rollout>,
  nodes: readonly NodeId[],
): Promise<void> => {
  const results: Made[] = []
  const stop = (): number => results.findIndex(({ kind }) => kind === 'stopped')
  while (results.length < nodes.length && stop() === -1) {
    const next = nodes.slice(results.length, results.length + madeAtOnce)
    results.push(...(await Promise.all(next.map((node) => madeFor(core, queueLength, row, node)))))
  }
  // Those behind the first that was stopped are found again: their ids are derived.
  const stopped = results[stop()]
  const reached = stopped === undefined ? results : results.slice(0, stop())
  const refusals = reached.filter((one) => one.kind === 'refused')
  const why = stopped?.kind === 'stopped' ? stopped.why : null
  if (reached.length === 0 && why === null) return
  await commitDecision(core, async () => {
    const rollout = await core.store.get('task-rollout', row.value.id)
    if (rollout === null || rollout.version !== row.version) return { kind: 'unchanged' } as const
    const facts = { rollout, by: bySystem, nowMs: core.clock.nowMs() }
    return reached.length === 0 && why !== null ? stalled(facts, why) : advanced(facts, reached.length, refusals)
  })
}

const madeFor = async (core: Core, queueLength: QueueLength, row: Row<Rollout>, node: NodeId): Promise<Made> => {
  const done = await makeTask(core, queueLength, row, node)
  if (!isRefusal(done)) return { kind: 'made' }
  const why = done.detail ?? done.code
  switch (done.code) {
    case 'ROLLOUT_ENDED':
    case 'BUSY':
      return { kind: 'stopped', why: null }
    case 'TASK_QUEUE_FULL':
      // A node that takes nothing any more must not keep the others waiting.
      return (await isFull(core, node)) ? { kind: 'refused', node, why } : { kind: 'stopped', why }
    default:
      return { kind: 'refused', node, why }
  }
}

const isFull = async ({ store }: Core, node: NodeId): Promise<boolean> => {
  const line = await store.get('task-line', node)
  return line !== null && line.value.queued >= mostQueuedOfNode
}

const makeTask = (core: Core, queueLength: QueueLength, rollout: Row<Rollout>, node: NodeId) => {
  const { type, parameters, lifeMs, queuedBy, correlation, by } = rollout.value
  return queueTask(
    core,
    { queueLength },
    {
      request: { node, type, parameters: { ...parameters }, expires_in_ms: lifeMs },
      queuer: queuedBy,
      by: { actor: by, source: null, correlation },
      correlation,
      rollout,
    },
  )
}

const cancelWaiting = async (core: Core, { id, state }: Rollout): Promise<void> => {
  const why = state.kind === 'cancelled' ? `its rollout was cancelled: ${state.why}` : 'its rollout is over'
  for (;;) {
    const where = { rollout: id, state: 'queued' }
    const waiting = await core.store.list('task', { where, order: 'sort_key', after: null, limit: cancelledAtOnce })
    if (waiting.length === 0) return
    for (const { value } of waiting) await cancelTask(core, value.id, why, bySystem)
    await turn(core.timers)
  }
}

export const cancelRollout = (core: FlowCore, id: string, why: string, by: Attribution) =>
  commitDecision(core, async () => {
    const rollout = await core.store.get('task-rollout', id)
    if (rollout === null) return refuse('ROLLOUT_NOT_FOUND', id)
    return decideCancelRollout({ rollout, by, nowMs: core.clock.nowMs() }, why)
  })

export const resumeRollout = (core: FlowCore, id: string, by: Attribution) =>
  commitDecision(core, async () => {
    const rollout = await core.store.get('task-rollout', id)
    if (rollout === null) return refuse('ROLLOUT_NOT_FOUND', id)
    const counts = await core.store.countTasksOf(id)
    return decideResumeRollout({ rollout, by, nowMs: core.clock.nowMs() }, counts)
  })
