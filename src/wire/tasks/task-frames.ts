// What plane and agent say to each other of tasks over a channel.

import { Type, type Static } from 'typebox'
import { taskIdShape } from '#wire/core/task-statements.ts'
import { closed } from '#wire/core/shapes.ts'

/** In the hello of an agent: the helper of its host takes tasks. In that of a plane: it has tasks. */
export const tasksCapability = 'tasks'

/** A node has far fewer under way: results that the plane has acknowledged are forgotten. */
export const mostHeld = 64

export const TasksState = Type.Object(
  {
    /** The number of the statement of verifiers that the agent holds. */
    verifiers: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    /** Tasks that the node has, running or with a result that is not acknowledged. What is dispatched and not among them is sent again. */
    held: Type.Array(Type.String({ pattern: taskIdShape }), { maxItems: mostHeld }),
  },
  closed,
)
export type TasksStateBody = Static<typeof TasksState>

/** One task, as its signer has signed it. */
export type PlaneTask = { task: string }

/** The number of the signers, which has changed: the agent fetches the statement anew. */
export type PlaneTaskVerifiers = { number: number }
