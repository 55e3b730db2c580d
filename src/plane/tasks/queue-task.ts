// Tasks are queued and cancelled. What is queued is durable before it is answered, and waits for its node.

import { createHash } from 'node:crypto'
import type { Attribution, Row } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { decideCancel } from '#domain/tasks/end-task.ts'
import { decideQueue } from '#domain/tasks/queue-task.ts'
import type { Rollout } from '#domain/tasks/rollout.ts'
import { outOfReach, type OnRecord } from '#domain/tasks/task-policy.ts'
import { queuerKey, usualTaskLifeMs, type Task, type TaskId, type TaskQueuer } from '#domain/tasks/task.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Random } from '#platform/random.ts'
import type { QueueTaskRequest } from '#wire/tasks/task-api.ts'
import { parameterProblem } from './parameter-problem.ts'
import type { QueueLength } from './queue-length.ts'
import { applierOnRecord, queuerOnRecord, tallyOf } from './queuers.ts'

export type QueueParts = { readonly queueLength: QueueLength }

export type Queueing = {
  readonly request: QueueTaskRequest
  readonly queuer: Pick<TaskQueuer, 'kind' | 'id'>
  readonly by: Attribution
  readonly correlation: string
  /** Of which it is a part; it is not made once that has been changed. */
  readonly rollout?: Row<Rollout>
}

/** `fresh`: it was not in the store before. */
export type QueuedTask = { readonly kind: 'queued'; readonly task: Task; readonly fresh: boolean }

export const queueTask = async (
  core: FlowCore,
  { queueLength }: QueueParts,
  { request, queuer, by, correlation, rollout }: Queueing,
): Promise<QueuedTask | Refusal> => {
  const { node: nodeId, type, parameters = {}, expires_in_ms: lifeMs = usualTaskLifeMs, idempotency_key: key } = request
  const problem = parameterProblem(type, parameters)
  if (problem !== null) return refuseField('TASK_PARAMETERS_INVALID', problem.path, problem.why)
  const id = idFor(core.random, queuer, rollout === undefined ? key : partOf(rollout.value), nodeId)
  const { store, clock } = core
  const done = await commitDecision(core, async () => {
    if (rollout !== undefined && (await store.get('task-rollout', rollout.value.id))?.version !== rollout.version)
      return refuse('ROLLOUT_ENDED', 'it was changed meanwhile')
    const node = await store.get('node', nodeId)
    if (node === null) return queuer.kind === 'worker' ? outOfReach(nodeId) : refuse('NODE_NOT_FOUND', nodeId)
    const { assignment } = node.value
    return decideQueue({
      ...{ node, by, correlation, nowMs: clock.nowMs() },
      wanted: { id, type, parameters, lifeMs, rollout: rollout ?? null },
      existing: await store.get('task', id),
      queuer: await queuerOnRecord(core, queuer),
      applier: await applierOf(core, rollout),
      vcluster: assignment === null ? null : await store.get('vcluster', assignment),
      domain: await domainSettingsRow(store),
      line: await store.get('task-line', nodeId),
      tally: await tallyOf(store, queuer),
      ...(await queueLength.now()),
    })
  })
  if (done.kind === 'refused') return { ...done, about: { ...done.about, node: nodeId, actor: by.actor } }
  if (done.kind === 'committed') queueLength.added(queuer)
  return { kind: 'queued', task: done.task, fresh: done.kind === 'committed' }
}

const applierOf = async (core: FlowCore, rollout: Row<Rollout> | undefined): Promise<OnRecord | null> =>
  rollout === undefined || rollout.value.appliedBy.id === rollout.value.queuedBy.id
    ? null
    : applierOnRecord(core, rollout.value.appliedBy)

export const cancelTask = async (
  core: FlowCore,
  id: TaskId,
  why: string,
  by: Attribution,
): Promise<{ readonly kind: 'cancelled'; readonly task: Task } | Refusal> => {
  const { store, clock } = core
  const done = await commitDecision(core, async () => {
    const task = await store.get('task', id)
    if (task === null) return refuse('TASK_NOT_FOUND', id)
    const line = await store.get('task-line', task.value.node)
    return decideCancel({ task, line, why, by, nowMs: clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'cancelled', task: done.task }
}

const idLength = 26
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'

/** Of 26 characters of 5 bits. */
const idOf = (bytes: Uint8Array): TaskId =>
  `task_${Array.from({ length: idLength }, (_, at) => alphabet[(bytes[at] ?? 0) % alphabet.length]).join('')}`

/** A key of a caller has no spaces. */
const partOf = ({ id }: Rollout): string => `rollout ${id}`

const idFor = (
  random: Random,
  queuer: Pick<TaskQueuer, 'kind' | 'id'>,
  key: string | undefined,
  node: NodeId,
): TaskId => (key === undefined ? randomTaskId(random) : taskIdOf(queuer, key, node))

const randomTaskId = (random: Random): TaskId => idOf(random.bytes(idLength))

/** The same for the same caller, key and node, so that the row itself remembers the key. */
const taskIdOf = (queuer: Pick<TaskQueuer, 'kind' | 'id'>, key: string, node: NodeId): TaskId =>
  idOf(
    createHash('sha256')
      .update([queuerKey(queuer), key, node].join('\n'))
      .digest(),
  )
