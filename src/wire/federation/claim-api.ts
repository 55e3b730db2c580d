// What domains tell each other of machines, and how operators introduce them to each other.

import { Type, type Static } from 'typebox'
import { domainNameShape } from '#wire/core/join-string.ts'
import { closed } from '#wire/core/shapes.ts'

/** So many machines and addresses in one statement, which has to fit a request. */
export const mostClaims = 50
export const mostHardware = 400
export const longestClaims = 49_152
/** Machines in one answer: those of another domain may be several of ours each. */
export const mostAnswered = 4 * mostClaims
const mostOfOne = 65

/** Neither a MAC nor a serial number is a secret, and a hash of one hides nothing. */
const Hardware = Type.String({
  pattern: '^(mac:[0-9a-f]{2}(:[0-9a-f]{2}){5}|bmc:[\\x21-\\x7e]([\\x20-\\x7e]{0,127}))$',
})
const State = Type.Union([Type.Literal('active'), Type.Literal('inactive')])
const NodeName = Type.String({ minLength: 1, maxLength: 63 })
const Machine = Type.Object(
  {
    node: NodeName,
    hardware: Type.Array(Hardware, { minItems: 1, maxItems: mostOfOne }),
    state: State,
  },
  closed,
)

/** The content of a `claims` statement: made for one receiver, so that it cannot be shown to another. */
export const Claims = Type.Object(
  {
    domain: Type.String({ maxLength: 256 }),
    to: Type.String({ maxLength: 256 }),
    at_ms: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    machines: Type.Array(Machine, { maxItems: mostClaims }),
  },
  closed,
)
export type Claims = Static<typeof Claims>

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

/** `GET /v1/peer-domains/self`, written to a file there and given to `POST /v1/peer-domains` here. */
export const PeerDomainIntroduction = Type.Object(
  {
    kind: Type.Literal('muster-peer-domain-1'),
    name: Type.String({ pattern: domainNameShape.source, maxLength: 253 }),
    url: Type.String({ pattern: '^https://[^@/?#]+$', maxLength: 300 }),
    roots: Type.Array(Type.String({ minLength: 1, maxLength: 16_384 }), { minItems: 1, maxItems: 8 }),
    statement_keys: Type.Array(Type.String({ pattern: '^[A-Za-z0-9+/]{40,400}={0,2}$' }), {
      minItems: 1,
      maxItems: 8,
    }),
  },
  closed,
)
export type PeerDomainIntroduction = Static<typeof PeerDomainIntroduction>

export const PeerDomainView = Type.Object({
  name: Type.String(),
  url: Type.String(),
  added_at: Type.String(),
  added_by: Type.String(),
  /** Machines it says are active there and that our registry knows. */
  active_there: Type.Integer(),
})
export type PeerDomainView = Static<typeof PeerDomainView>
export const PeerDomainList = Type.Object({ peer_domains: Type.Array(PeerDomainView) })
