// How a node gets its tasks where it has no channel, and how it says what became of them.

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { taskStates } from '#domain/tasks/task.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeIdText, NodeParams, oneOf, orNull } from '#wire/core/shapes.ts'
import { longestTaskEnvelope } from '#wire/core/task-statements.ts'
import { TaskIdText } from './task-api.ts'

export const mostWaitSeconds = 60
export const usualWaitSeconds = 30

/** `GET /v1/nodes/{id}/tasks/wait` */
const WaitQuery = Type.Object({ wait: Type.Optional(Type.Integer({ minimum: 0, maximum: mostWaitSeconds })) }, closed)
export const TaskWaitAnswer = Type.Object({
  /** Envelopes. One that was handed out before, and has no result, may come again. */
  tasks: Type.Array(Type.Object({ task: Type.String({ maxLength: longestTaskEnvelope }) })),
})

/** In characters. A control character has up to six bytes as JSON. */
const longestOutputPart = 8192
export const longestDetail = 256
/** As JSON. */
export const longestEvidence = 4096
const longestResult = 256 * 1024

const Time = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$' })
const OutputPart = Type.String({ maxLength: longestOutputPart })

/** `POST /v1/nodes/{id}/tasks/{task}/result`. `refused`: the host did not begin with it. */
export const TaskResultRequest = Type.Object(
  {
    state: oneOf(['completed', 'failed', 'unknown', 'refused']),
    /** Null: it ran to its end. Else a code of docs/TASKS.md; those of later agents are kept as they are. */
    code: orNull(Type.String({ pattern: '^[A-Z][A-Z_]{1,63}$' })),
    exit_code: orNull(Type.Integer({ minimum: -(2 ** 31), maximum: 2 ** 32 })),
    detail: orNull(Type.String({ maxLength: longestDetail })),
    /** The beginning and the end of what it wrote, and how much that was in all. */
    output: orNull(
      Type.Object(
        {
          head: OutputPart,
          tail: OutputPart,
          bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
        },
        closed,
      ),
    ),
    started_at: orNull(Time),
    evidence: orNull(recordOf(Type.String({ maxLength: 64 }), Type.Unknown(), { maxProperties: 64 })),
  },
  closed,
)
export type TaskResultRequest = Static<typeof TaskResultRequest>

export const taskNodeApi = {
  wait: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id/tasks/wait',
    access: 'node-itself',
    summary:
      'Waits for tasks and answers with their envelopes, or with none when the time is over. While it asks again and again, the node is present as with a channel',
    params: NodeParams,
    query: WaitQuery,
    answer: TaskWaitAnswer,
  }),
  result: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/tasks/:task/result',
    access: 'node-itself',
    summary: 'Says how a task ended. It counts once; the same result again is answered like the first time',
    params: Type.Object({ id: NodeIdText, task: TaskIdText }, closed),
    largestBody: longestResult,
    body: TaskResultRequest,
    answer: Type.Object({ state: oneOf(taskStates) }),
  }),
}
