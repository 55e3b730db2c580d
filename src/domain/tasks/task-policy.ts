// Who may queue what where. It is asked when a task is queued and again when it is dispatched, so that a policy that was changed
// meanwhile holds for what waits.

import type { Read } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { AllowedTasks } from '#domain/core/task-types.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { issuerInId, roleAllows, type Role } from '#domain/core/principal.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { TaskQueuer } from './task.ts'

/** Who queues, with the rights that are on record now. */
export type TaskCaller =
  | (TaskQueuer & { readonly kind: 'operator'; readonly role: Role })
  | (TaskQueuer & {
      readonly kind: 'worker'
      /** Of its issuer. */
      readonly types: readonly string[]
      readonly vclusters: readonly string[]
    })

/** As a decision relies on it: a key that is revoked meanwhile wins the race. */
export type OnRecord = {
  readonly reads: readonly Read[]
  /** Text: why there is no such caller any more. */
  readonly caller: TaskCaller | string
}

/** What of a vCluster says which tasks its nodes take. */
export type TaskGround = {
  readonly name: string
  readonly tasks: AllowedTasks
  readonly deletedAtMs: number | null
}

export type PolicyFacts = {
  readonly caller: TaskCaller
  readonly node: Pick<Node, 'id' | 'assignment'>
  /** The one that the node is assigned to; null: it is in none, or there is none of that name. */
  readonly vcluster: TaskGround | null
  readonly domain: Pick<DomainSettings, 'tasks'>
  readonly type: string
}

/** The answer to a worker about a node that does not exist or is outside of its vClusters: any other would disclose nodes of the fleet. */
export const outOfReach = (node: NodeId): Refusal =>
  refuse('NODE_NOT_FOUND', `no node ${node} is in a vCluster of the issuer of this worker`)

/** Asked before anything that says more about the node. Null: it is in reach of the caller. */
export const beyondReach = (caller: TaskCaller, { id, assignment }: PolicyFacts['node']): Refusal | null =>
  caller.kind === 'worker' && (assignment === null || !caller.vclusters.includes(assignment)) ? outOfReach(id) : null

/** Null: it may. */
export const mayQueue = ({ caller, node, vcluster, domain, type }: PolicyFacts): Refusal | null => {
  const beyond = beyondReach(caller, node)
  if (beyond !== null) return beyond
  const off = switchedOff(domain.tasks, type)
  if (off !== null) return off
  if (caller.kind === 'operator' && !roleAllows(caller.role, 'operator'))
    return refuse('ROLE_FORBIDDEN', 'tasks need the role operator')
  if (node.assignment === null)
    return caller.kind === 'operator' && caller.role === 'platform-admin'
      ? null
      : refuse('ROLE_FORBIDDEN', `${node.id} is in no vCluster: its tasks need the role platform-admin`)
  if (vcluster === null || vcluster.deletedAtMs !== null) return refuse('VCLUSTER_NOT_FOUND', node.assignment)
  if (!vcluster.tasks.types.includes(type)) return notAllowed(listed(vcluster, type))
  if (caller.kind === 'operator') return null
  return caller.types.includes(type) ? null : notAllowed(notOfIssuer(caller, type))
}

const switchedOff = (tasks: DomainSettings['tasks'], type: string): Refusal | null =>
  (type === 'run' || type === 'reboot') && !tasks[type]
    ? notAllowed(`${type} is off in this domain: muster domain set tasks.${type}=true`)
    : null

const listed = ({ name, tasks: { types } }: TaskGround, type: string): string => {
  const allowed = types.length === 0 ? 'no types' : types.join(', ')
  return `vCluster ${name} allows ${allowed}: muster vcluster set ${name} tasks.types=${[...types, type].join(',')}`
}

const notOfIssuer = (
  { id, types }: Pick<Extract<TaskCaller, { kind: 'worker' }>, 'id' | 'types'>,
  type: string,
): string => {
  const issuer = issuerInId(id)
  return `workers of ${issuer} may not queue ${type}: muster worker-issuer set ${issuer} --types ${[...types, type].join(',')}`
}

const notAllowed = (detail: string): Refusal => refuseField('TASK_TYPE_NOT_ALLOWED', 'type', detail)
