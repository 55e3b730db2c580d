// Whether a task is queued. A caller that lost the answer asks again with the same idempotency key and gets the same task.

import { forgedWords, readOf, withPart, type Attribution, type Row } from '#domain/core/change.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import { issuerInId } from '#domain/core/principal.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isTaskType } from '#domain/core/task-types.ts'
import type { Rollout } from './rollout.ts'
import {
  mostQueued,
  mostQueuedOfNode,
  shareOfIssuer,
  shareOfWorkers,
  taskLifeLimitMs,
  type Task,
  type TaskId,
  type TaskLine,
  type TaskQueuer,
} from './task.ts'
import { parametersInShort, taskStep, type TaskDecided, type TaskUnchanged } from './task-change.ts'
import { isTallied, tallied, tooManyRuns, type TallyFacts } from './run-tally.ts'
import { beyondReach, mayQueue, type OnRecord, type PolicyFacts, type TaskGround } from './task-policy.ts'

export type QueueFacts = {
  readonly wanted: {
    readonly id: TaskId
    readonly type: string
    readonly parameters: Task['parameters']
    readonly lifeMs: number
    /** Null: it is queued for itself. */
    readonly rollout: Row<Rollout> | null
  }
  /** What is in the store under that id. */
  readonly existing: Row<Task> | null
  readonly queuer: OnRecord
  /** Who applied the plan of its rollout, where that is another operator: the task needs the rights of both. */
  readonly applier: OnRecord | null
  readonly node: Row<Node>
  readonly vcluster: Row<TaskGround> | null
  readonly domain: Row<DomainSettings>
  readonly line: Row<TaskLine> | null
  readonly tally: Omit<TallyFacts, 'nowMs'>
  /** In the whole domain, as last counted. */
  readonly queued: number
  /** Of these, those of workers, by the names of their issuers. */
  readonly queuedOf: ReadonlyMap<string, number>
  readonly correlation: string
  readonly by: Attribution
  readonly nowMs: number
}

export const decideQueue = (facts: QueueFacts): TaskDecided | TaskUnchanged | Refusal => {
  const { wanted, existing, queuer, applier, node, vcluster, domain, line, correlation, by, nowMs } = facts
  const { type, lifeMs } = wanted
  if (existing !== null) return repeated(facts, existing.value)
  // Those of a rollout were counted, or approved, when it began.
  const counts = wanted.rollout === null && isTallied(domain.value.tasks, type)
  if (!isTaskType(type)) return refuseField('TASK_TYPE_NOT_ALLOWED', 'type', 'there is no such type')
  if (typeof queuer.caller === 'string') return refuse('OPERATOR_KEY_INVALID', queuer.caller)
  if (typeof applier?.caller === 'string') return refuse('OPERATOR_KEY_INVALID', applier.caller)
  const where = { node: node.value, vcluster: vcluster === null ? null : vcluster.value, domain: domain.value, type }
  const no =
    (applier === null ? null : barredFrom({ caller: applier.caller, ...where })) ??
    barredFrom({ caller: queuer.caller, ...where }) ??
    full(facts) ??
    overShare(facts, queuer.caller) ??
    (counts ? tooManyRuns({ ...facts.tally, nowMs }, domain.value.tasks, type) : null)
  if (no !== null) return no
  const { kind, id, name } = queuer.caller
  const task: Task = {
    id: wanted.id,
    node: node.value.id,
    epoch: node.value.epoch,
    type,
    parameters: wanted.parameters,
    queuedBy: { kind, id, name },
    rollout: wanted.rollout === null ? null : wanted.rollout.value.id,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + lifeLimited(lifeMs),
    correlation,
    state: { kind: 'queued' },
  }
  const step = taskStep({
    ...{ from: null, task, line, by, nowMs, type: 'task.queued' },
    body: { parameters: parametersInShort(task.parameters), expires_at_ms: task.expiresAtMs },
    reads: [
      readOf('node', task.node, node),
      readOf('domain', 'domain', domain),
      ...(node.value.assignment === null ? [] : [readOf('vcluster', node.value.assignment, vcluster)]),
      ...queuer.reads,
      ...(applier === null ? [] : applier.reads),
      ...(wanted.rollout === null ? [] : [readOf('task-rollout', wanted.rollout.value.id, wanted.rollout)]),
    ],
  })
  return counts ? { ...step, change: withPart(step.change, tallied({ ...facts.tally, nowMs }, 1)) } : step
}

/** Why a node gets no such task now; null: it may have one. */
export const barredFrom = (facts: Omit<PolicyFacts, 'node'> & { readonly node: Node }): Refusal | null =>
  beyondReach(facts.caller, facts.node) ?? noTaskFor(facts.node) ?? mayQueue(facts)

/** Null: its epoch can take one. */
const noTaskFor = (node: Node): Refusal | null => {
  switch (node.membership.kind) {
    case 'revoked':
      return refuse('NODE_REVOKED', node.id)
    case 'quarantined':
      return refuse('NODE_QUARANTINED', node.id)
    case 'registered':
    case 'enrolled':
    case 'active':
    case 'inactive':
      return slotsOf(node) === null
        ? refuse('NODE_STATE_CONFLICT', `${node.id} has no identity that could take a task: it has to enroll first`)
        : null
  }
}

const full = ({ node, line, queued }: QueueFacts): Refusal | null => {
  if (line !== null && line.value.queued >= mostQueuedOfNode)
    return refuse('TASK_QUEUE_FULL', `${mostQueuedOfNode} tasks wait for ${node.value.id}`)
  return queued >= mostQueued ? refuse('TASK_QUEUE_FULL', `${mostQueued} tasks wait in this domain`) : null
}

/** A worker that loops, and the others of its issuer, must not take every place: operators and other issuers queue as well. */
const overShare = ({ node, line, queuedOf }: QueueFacts, { kind, id }: TaskQueuer): Refusal | null => {
  if (kind !== 'worker') return null
  const issuer = issuerInId(id)
  const atNode = new Map(Object.entries(line === null ? {} : line.value.queuedOf))
  const over = (of: ReadonlyMap<string, number>, places: number, where: string): Refusal | null => {
    const all = [...of.values()].reduce((sum, count) => sum + count, 0)
    if ((of.get(issuer) ?? 0) >= places * shareOfIssuer)
      return refuse('TASK_QUEUE_FULL', `${places * shareOfIssuer} tasks of workers of ${issuer} wait ${where}`)
    return all >= places * shareOfWorkers
      ? refuse('TASK_QUEUE_FULL', `${places * shareOfWorkers} tasks of workers wait ${where}`)
      : null
  }
  return over(atNode, mostQueuedOfNode, `for ${node.value.id}`) ?? over(queuedOf, mostQueued, 'in this domain')
}

/** Also once it has ended: a repeated request starts nothing twice. */
const repeated = (facts: QueueFacts, known: Task): TaskUnchanged | Refusal => {
  const differs = differenceFrom(facts, known)
  return differs === null
    ? { kind: 'unchanged', task: known }
    : { ...refuse('IDEMPOTENCY_CONFLICT', `${known.id} ${differs}`), about: { task: known.id } }
}

/** Null: it is what was asked for. The rows of a rollout say themselves which node of which epoch has had its turn. */
const differenceFrom = ({ wanted, node }: QueueFacts, known: Task): string | null => {
  const { type, parameters, lifeMs, rollout } = wanted
  if (known.forged) return forgedWords
  if (known.node !== node.value.id || known.type !== type) return `is a task of type ${known.type} for ${known.node}`
  if (!isSame(known.parameters, parameters)) return 'has other parameters'
  if (rollout !== null) return null
  const knownLifeMs = known.expiresAtMs - known.createdAtMs
  if (knownLifeMs !== lifeLimited(lifeMs)) return `lives ${knownLifeMs} ms`
  return known.epoch === node.value.epoch
    ? null
    : `is for epoch ${known.epoch} of ${known.node}, which has epoch ${node.value.epoch} now`
}

const lifeLimited = (lifeMs: number): number => Math.min(lifeMs, taskLifeLimitMs)

/** Independent of the order of fields. */
export const isSame = (one: unknown, other: unknown): boolean => {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const [these, those] = [Object.entries(one), new Map(Object.entries(other))]
  return (
    these.length === those.size && these.every(([name, value]) => those.has(name) && isSame(value, those.get(name)))
  )
}
