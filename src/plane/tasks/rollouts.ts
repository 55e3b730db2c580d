// Rollouts at the leader: it makes the next tasks while there is room, holds a rollout that fails too often, and ends what waits of one
// that was cancelled. A leader that dies in the middle is followed by one that finds the same tasks, since their ids are derived.

import type { Attribution, Row } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  advanced,
  decideCancelRollout,
  decideResumeRollout,
  finished,
  held,
  nextStep,
  settled,
  type Rollout,
  type RolloutDecided,
  type RolloutUnchanged,
} from '#domain/tasks/rollout.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { withStore, type Core, type FlowCore } from '#plane/core/core.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { turn } from '#platform/timers.ts'
import { openQueueLength, type QueueLength } from './queue-length.ts'
import { cancelTask, queueTask } from './queue-task.ts'
import { queuerOnRecord } from './queuers.ts'

const everyMs = 1000
/** Rollouts that are looked at in a run, and tasks that are made of one of them. */
const mostOpen = 100
const madeAtOnce = 100
const besides = 16

const bySystem = { actor: 'system:tasks', source: null, correlation: null } as const

export const openRolloutUpkeep = (core: Core): UpkeepTask => ({
  name: 'rollouts',
  where: 'leader',
  everyMs,
  async run(asLeader) {
    const leading = withStore(core, asLeader)
    const queueLength = openQueueLength(leading)
    for (const { value } of await leading.store.list('task-rollout', { order: 'open', after: null, limit: mostOpen })) {
      await goOn(leading, queueLength, value.id)
      await turn(leading.timers)
    }
  },
})

const goOn = async (core: Core, queueLength: QueueLength, id: string): Promise<void> => {
  const { store, clock } = core
  const row = await store.get('task-rollout', id)
  if (row === null) return
  const { caller } = await queuerOnRecord(core, row.value.queuedBy)
  const step = nextStep({
    rollout: row.value,
    counts: await store.countTasksOf(id),
    queuerEnded: typeof caller === 'string' ? caller : null,
    nowMs: clock.nowMs(),
  })
  switch (step.kind) {
    case 'wait':
      return
    case 'make':
      return makeTasks(core, queueLength, row, step.nodes.slice(0, madeAtOnce))
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

/** The tasks are in the store before the row says that they are. A row that was written meanwhile keeps further ones from being made. */
const makeTasks = async (
  core: Core,
  queueLength: QueueLength,
  row: Row<Rollout>,
  nodes: readonly NodeId[],
): Promise<void> => {
  const refusals: { readonly node: NodeId; readonly why: string }[] = []
  const make = async (node: NodeId): Promise<'made' | 'stopped'> => {
    const done = await makeTask(core, queueLength, row, node)
    if (!isRefusal(done)) return 'made'
    // It has to wait, whatever node it is for.
    if (done.code === 'TASK_QUEUE_FULL' || done.code === 'ROLLOUT_ENDED' || done.code === 'BUSY') return 'stopped'
    refusals.push({ node, why: done.detail ?? done.code })
    return 'made'
  }
  let reached = 0
  for (; reached < nodes.length; reached += besides) {
    const made = await Promise.all(nodes.slice(reached, reached + besides).map(make))
    // Those behind the first that was stopped are found again: their ids are derived.
    if (made.includes('stopped')) return
  }
  await commitDecision(core, async () => {
    const rollout = await core.store.get('task-rollout', row.value.id)
    if (rollout === null || rollout.version !== row.version) return { kind: 'unchanged' } as const
    return advanced({ rollout, by: bySystem, nowMs: core.clock.nowMs() }, nodes.length, refusals)
  })
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
    const waiting = await core.store.list('task', { where, order: 'sort_key', after: null, limit: madeAtOnce })
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
