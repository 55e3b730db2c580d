// How a node learns which task signers to accept.

import { Type } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeParams, orNull } from '#wire/core/shapes.ts'
import { longestVerifiers, NonceText } from '#wire/core/task-statements.ts'

/** `POST /v1/nodes/{id}/task-verifiers` */
export const TaskVerifiersRequest = Type.Object({ nonce: orNull(NonceText) }, closed)
export const TaskVerifiersAnswer = Type.Object({
  /** Signed by the statement key; good for 24 h. */
  statement: Type.String({ maxLength: longestVerifiers }),
})

export const taskVerifiersApi = {
  verifiers: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/task-verifiers',
    access: 'node-itself',
    summary:
      'Which task signers the node is to accept, signed by the statement key; with its nonce also a proof of the time',
    params: NodeParams,
    body: TaskVerifiersRequest,
    answer: TaskVerifiersAnswer,
  }),
}
