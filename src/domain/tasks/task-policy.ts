// Who may queue what where. It is asked when a task is queued and again when it is dispatched, so that a policy that was changed
// meanwhile holds for what waits.

import type { Read } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { AllowedTasks } from '#domain/core/task-types.ts'
import type { Node } from '#domain/core/node.ts'
import { roleAllows, type Role } from '#domain/core/principal.ts'
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

/** Null: it may. */
export const mayQueue = ({ caller, node, vcluster, domain, type }: PolicyFacts): Refusal | null => {
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
  if (!caller.types.includes(type)) return notAllowed(`workers of this issuer may not queue ${type}`)
  return caller.vclusters.includes(vcluster.name)
    ? null
    : notAllowed(`workers of this issuer may not queue in vCluster ${vcluster.name}`)
}

const switchedOff = (tasks: DomainSettings['tasks'], type: string): Refusal | null =>
  (type === 'run' || type === 'reboot') && !tasks[type]
    ? notAllowed(`${type} is off in this domain: muster domain set tasks.${type}=true`)
    : null

const listed = ({ name, tasks: { types } }: TaskGround, type: string): string => {
  const allowed = types.length === 0 ? 'no types' : types.join(', ')
  return `vCluster ${name} allows ${allowed}: muster vcluster set ${name} tasks.types=${[...types, type].join(',')}`
}

const notAllowed = (detail: string): Refusal => refuseField('TASK_TYPE_NOT_ALLOWED', 'type', detail)
