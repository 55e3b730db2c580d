// Ends what waits for nothing any more: tasks whose time is over, whose node has another epoch or none, or whose operator key or
// worker has ended. Done by the leader. Which nodes have open tasks it keeps in memory, so that commits about others cost nothing.

import type { NodeId } from '#domain/core/node.ts'
import { decideOverdue, epochEnd } from '#domain/tasks/end-task.ts'
import { dueUpTo, queuerKey, resultAwaitedMs, taskDue, taskPlace, type Task, type TaskId } from '#domain/tasks/task.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { withStore, type Core } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import { queuerOnRecord } from './queuers.ts'
import { firstOfEach, pagesOf } from './task-pages.ts'

const everyMs = 1000

const bySystem = { actor: 'system:tasks', source: null, correlation: null } as const

export const openTaskSweep = (core: Core): UpkeepTask => {
  const { store, feed } = core
  const waiting = new Set<NodeId>()
  const touched = new Set<NodeId>()
  let lookedAt: NodeId | null = null
  /** The journal was not followed before this replica led. */
  let unknown = true
  store.replicas.onLeadership(() => {
    unknown = true
    waiting.clear()
    touched.clear()
  })
  feed.subscribe('tasks', ({ entries }) => {
    if (store.replicas.leadership() === null) return
    for (const { entry } of entries) {
      const { node, type } = entry
      if (node === null) continue
      // What becomes of a task ends no other one: a node with a thousand of them is not looked at for each of its steps.
      if (!type.startsWith('task.')) {
        if (waiting.has(node)) touched.add(node)
      } else if (type === 'task.queued' && (!waiting.has(node) || node === lookedAt)) {
        waiting.add(node)
        touched.add(node)
      }
    }
  })

  const findWaiting = async (leading: Core): Promise<void> => {
    unknown = false
    try {
      for await (const { node } of firstOfEach(leading, 'waits_for', ({ node }) => node)) {
        waiting.add(node)
        touched.add(node)
      }
    } catch (error) {
      unknown = true
      throw error
    }
  }

  /** What fails is looked at again in the next round, and keeps nothing else waiting. */
  const lookAtTouched = async (leading: Core): Promise<readonly unknown[]> => {
    const failures: unknown[] = []
    for (const node of [...touched]) {
      touched.delete(node)
      try {
        await lookAtNode(leading, node)
      } catch (error) {
        touched.add(node)
        if (error instanceof StaleReplica) throw error
        failures.push(error)
      } finally {
        lookedAt = null
      }
    }
    return failures
  }

  const lookAtNode = async (leading: Core, node: NodeId): Promise<void> => {
    lookedAt = node
    let open = 0
    const row = await leading.store.get('node', node)
    const isOver = ({ forged, epoch }: Task): boolean =>
      forged === true || row === null || epochEnd(row.value, epoch) !== null
    for await (const tasks of pagesOf(leading, { where: { waits_for: node }, order: 'sort_key' }, taskPlace)) {
      open += tasks.length
      await endEach(leading, tasks.filter(isOver))
    }
    // Tasks are queued meanwhile: then it is touched, and looked at again.
    if (open === 0 && !touched.has(node)) waiting.delete(node)
  }

  return {
    name: 'tasks',
    where: 'leader',
    everyMs,
    async run(asLeader) {
      const leading = withStore(core, asLeader)
      if (unknown) await findWaiting(leading)
      const failures = await lookAtTouched(leading)
      await endOfEndedQueuers(leading)
      await endDue(leading)
      if (failures.length > 0) throw new AggregateError(failures, 'the tasks of some nodes could not be looked at')
    },
  }
}

const endOfEndedQueuers = async (leading: Core): Promise<void> => {
  for await (const { queuedBy } of firstOfEach(leading, 'queuer', (task) => queuerKey(task.queuedBy))) {
    const { caller } = await queuerOnRecord(leading, queuedBy)
    if (typeof caller !== 'string') continue
    const query = { where: { queuer: queuerKey(queuedBy) }, order: 'sort_key' }
    for await (const tasks of pagesOf(leading, query, taskPlace)) await endEach(leading, tasks)
  }
}

const endDue = async (leading: Core): Promise<void> => {
  const { clockToleranceMs } = (await domainSettingsRow(leading.store)).value
  const nowMs = leading.clock.nowMs()
  const upTo = {
    queued: dueUpTo(nowMs),
    dispatched: dueUpTo(nowMs - clockToleranceMs - resultAwaitedMs),
  }
  for (const state of ['queued', 'dispatched'] as const) {
    for await (const tasks of pagesOf(leading, { where: { state }, order: 'due' }, taskDue)) {
      const due = tasks.filter((task) => (taskDue(task) ?? '~') <= upTo[state])
      await endEach(leading, due)
      if (due.length < tasks.length) break
    }
  }
}

/** Those of one node one after the other, since they share a row; of different nodes at once, since they share a flush. */
const endEach = async (leading: Core, tasks: readonly Task[]): Promise<void> => {
  const ofNodes = Map.groupBy(tasks, ({ node }) => node).values()
  await Promise.all(
    [...ofNodes].map(async (ofNode) => {
      for (const { id } of ofNode) await endOverdue(leading, id)
    }),
  )
}

const endOverdue = async (leading: Core, id: TaskId): Promise<void> => {
  const { store, clock } = leading
  await commitDecision(leading, async () => {
    const task = await store.get('task', id)
    if (task === null) return { kind: 'gone' } as const
    const { node, queuedBy } = task.value
    return decideOverdue({
      ...{ task, by: bySystem, nowMs: clock.nowMs() },
      line: await store.get('task-line', node),
      node: await store.get('node', node),
      domain: await domainSettingsRow(store),
      queuer: await queuerOnRecord(leading, queuedBy),
    })
  })
}
