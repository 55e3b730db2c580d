// Claims that domains exchange about machines.

import { Type, type Static } from 'typebox'
import { Hardware, longestClaims, mostAnswered, mostOfOne, NodeName, State } from '#wire/core/claims.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed } from '#wire/core/shapes.ts'

/** `POST /v1/claims`, on the node listener: signed by the domain it speaks for, so no certificate is asked for. */
export const ClaimsRequest = Type.Object({ statement: Type.String({ minLength: 1, maxLength: longestClaims }) }, closed)
/** What the receiver knows of those machines: advice in the other direction, and kept like it. */
export const ClaimsAnswer = Type.Object({
  machines: Type.Array(
    Type.Object({ node: NodeName, hardware: Type.Array(Hardware, { maxItems: mostOfOne }), state: State }),
    { maxItems: mostAnswered },
  ),
})
export type ClaimsAnswer = Static<typeof ClaimsAnswer>

export const claimApi = {
  exchange: endpoint({
    method: 'POST',
    path: '/v1/claims',
    access: 'anyone',
    summary: 'What another domain has signed of machines that may be in both registries; answers what is here',
    body: ClaimsRequest,
    answer: ClaimsAnswer,
  }),
}
