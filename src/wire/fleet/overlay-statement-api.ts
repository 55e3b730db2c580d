// How the helper of a node learns what the plane wants started there.

import { Type } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { longestOverlayStatement } from '#wire/core/overlay-statement.ts'
import { closed, NodeParams } from '#wire/core/shapes.ts'
import { NonceText } from '#wire/core/task-statements.ts'

/** `POST /v1/nodes/{id}/overlay-statement` */
export const OverlayStatementRequest = Type.Object({ nonce: NonceText }, closed)
export const OverlayStatementAnswer = Type.Object({
  /** Signed by the statement key, for the helper that made the nonce. */
  statement: Type.String({ maxLength: longestOverlayStatement }),
})

export const overlayStatementApi = {
  current: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/overlay-statement',
    access: 'node-itself',
    summary: 'Which services and checks the helper of the node may start now, signed by the statement key',
    params: NodeParams,
    body: OverlayStatementRequest,
    answer: OverlayStatementAnswer,
  }),
}
