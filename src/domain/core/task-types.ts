// The types of tasks, and which of them a vCluster and the domain allow (tasks/task-policy.ts judges by it).

import type { Rule } from './settings-check.ts'

/** What ships. Types of the host's own begin with `x-`. */
export const shippedTaskTypes = [
  'run',
  'service',
  'fetch-file',
  'reboot',
  'rotate-recovery',
  'collect-diagnostics',
  'cleanup',
] as const
export type ShippedTaskType = (typeof shippedTaskTypes)[number]

/** A type of the host's own, by the name in its manifest. */
const ownType = /^x-[a-z0-9-]{1,30}$/

export const isShippedType = (type: string): type is ShippedTaskType =>
  (shippedTaskTypes as readonly string[]).includes(type)

export const isTaskType = (type: string): boolean => isShippedType(type) || ownType.test(type)

/** Of a vCluster. */
export type AllowedTasks = { readonly types: readonly string[] }

export const noTasks: AllowedTasks = { types: [] }

/** Of the domain: types that can do the most harm are off until they are switched on. */
export type TaskSwitches = {
  readonly run: boolean
  readonly reboot: boolean
  /** More tasks of type `run` than this within an hour need another operator than the one who queues them; null: they do not. */
  readonly approveRunAbove: number | null
}

export const tasksOff: TaskSwitches = { run: false, reboot: false, approveRunAbove: null }

const mostNodes = 10_000

export const approveRunAboveRule: Rule = {
  takes: `a number of nodes from 0 to ${mostNodes}, or none (null)`,
  fits: (value) =>
    value === null || (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= mostNodes),
}

const mostTypes = 64

export const taskTypesListed = `${shippedTaskTypes.join(', ')}, or one that begins with x-`

const typesTaken = `a list of at most ${mostTypes} types of tasks, each once: ${taskTypesListed}`

export const taskTypesRule: Rule = {
  takes: typesTaken,
  why: (value) => {
    const wrong = Array.isArray(value) ? value.find((type) => typeof type !== 'string' || !isTaskType(type)) : undefined
    const named = typeof wrong === 'string' ? `${JSON.stringify(wrong.slice(0, 64))} is no type of task; ` : ''
    return `${named}tasks.types takes ${typesTaken}`
  },
  fits: (value) =>
    Array.isArray(value) &&
    value.length <= mostTypes &&
    new Set(value).size === value.length &&
    value.every((type) => typeof type === 'string' && isTaskType(type)),
}
