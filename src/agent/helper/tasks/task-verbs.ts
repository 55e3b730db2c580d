// The verbs for signed tasks. What of them is believed is decided by the helper alone: an agent that is an attacker's can have
// nothing done that a task signer of this domain has not signed for this node (docs/TASKS.md).

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { closed, oneOf, orNull } from '#wire/core/shapes.ts'
import { longestTaskEnvelope, longestVerifiers, taskIdShape } from '#wire/core/task-statements.ts'
import { taskFaults, type TaskFault } from '#wire/tasks/task-faults.ts'

/** Bytes of a program's output that are kept of its beginning, and as many of its end. */
export const keptOutput = 8_192
export const longestDetail = 256
/** As JSON. */
export const longestEvidence = 4_096

const TaskId = Type.String({ pattern: taskIdShape })
const whole = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** How a task ended here. `code`: null where it ran to its end; `INTERRUPTED`: whether it had an effect is unknown. */
export const HostResult = Type.Object(
  {
    code: orNull(oneOf(taskFaults)),
    exit_code: orNull(Type.Integer()),
    detail: orNull(Type.String({ maxLength: longestDetail })),
    output: orNull(
      Type.Object(
        { head: Type.String({ maxLength: keptOutput }), tail: Type.String({ maxLength: keptOutput }), bytes: whole },
        closed,
      ),
    ),
    started_at_ms: orNull(whole),
    evidence: orNull(recordOf(Type.String({ maxLength: 64 }), Type.Unknown(), { maxProperties: 64 })),
  },
  closed,
)
export type HostResult = Static<typeof HostResult>

export const taskVerbs = {
  /** For a statement that proves the time: it counts once, for five minutes. */
  'task.nonce': {
    request: Type.Object({}, closed),
    answer: Type.Object({ nonce: Type.String() }),
  },
  /** A statement of verifiers without a task. A helper that remembers none takes one before it takes tasks: later ones only are its. */
  'task.learn': {
    request: Type.Object({ statement: Type.String({ maxLength: longestVerifiers }) }, closed),
    answer: Type.Object({}),
  },
  'task.begin': {
    request: Type.Object(
      {
        /** Of verifiers; null: the one that the helper has is to be used. */
        statement: orNull(Type.String({ maxLength: longestVerifiers })),
        task: Type.String({ maxLength: longestTaskEnvelope }),
        /** Of a `fetch-file`: where the agent has put the bytes. The helper has to be able to read it. */
        file: Type.Optional(Type.String({ pattern: '^/[^\\u0000]+$', maxLength: 1024 })),
      },
      closed,
    ),
    /** `known`: it was begun before, and `task.look` says what became of it. `yours`: verified and remembered, for the agent to do. */
    answer: Type.Object({ outcome: oneOf(['begun', 'known', 'yours'] as const) }),
  },
  /** How a task that was `yours` ended. */
  'task.ended': {
    request: Type.Object({ id: TaskId, ...HostResult.properties }, closed),
    answer: Type.Object({}),
  },
  'task.look': {
    request: Type.Object({}, closed),
    answer: Type.Object({
      /** Of the newest statement that was accepted; null: there is none. */
      number: orNull(Type.Integer()),
      epoch: orNull(Type.Integer()),
      /** Those that were not forgotten, the oldest first. An ended one without a result gets its turn when others are forgotten. */
      tasks: Type.Array(
        Type.Object({
          id: Type.String(),
          type: Type.String(),
          state: oneOf(['running', 'ended'] as const),
          result: orNull(HostResult),
        }),
      ),
    }),
  },
  /** The plane has its result. The helper keeps the id until it cannot be replayed any more. Also where there is none. */
  'task.forget': {
    request: Type.Object({ id: TaskId }, closed),
    answer: Type.Object({}),
  },
} as const

/** Why a task is not begun; `why` is a sentence without its full stop. */
export type TaskRefusal = { readonly kind: 'task-refused'; readonly fault: TaskFault; readonly why: string }

export const refuseTask = (fault: TaskFault, why: string): TaskRefusal => ({ kind: 'task-refused', fault, why })

/** The message of a refusal with the code TASK_REFUSED. */
export const refusalMessage = ({ fault, why }: TaskRefusal): string => `${fault}: ${why}`

/** For the agent: what that message says. A fault of a newer helper is `NOT_DONE`. */
export const readRefusal = (message: string): { readonly fault: TaskFault; readonly why: string } => {
  const [, name = '', why = ''] = /^([A-Z_]+): (.*)$/s.exec(message) ?? []
  const fault = taskFaults.find((one) => one === name)
  return fault === undefined ? { fault: 'NOT_DONE', why: message } : { fault, why }
}
