// What a domain signs for another of the machines both may have: the content of a `claims` statement.

import { Type, type Static } from 'typebox'
import { closed } from './shapes.ts'

/** The number of machines and addresses in one statement, which has to fit a request. */
export const mostClaims = 50
export const mostHardware = 400
export const longestClaims = 49_152
/** Machines in one answer: those of another domain may be several of ours each. */
export const mostAnswered = 4 * mostClaims
export const mostOfOne = 65

/** Neither a MAC nor a serial number is a secret, and a hash of one hides nothing. */
export const Hardware = Type.String({
  pattern: '^(mac:[0-9a-f]{2}(:[0-9a-f]{2}){5}|bmc:[\\x21-\\x7e]([\\x20-\\x7e]{0,127}))$',
})
export const State = Type.Union([Type.Literal('active'), Type.Literal('inactive')])
export const NodeName = Type.String({ minLength: 1, maxLength: 63 })
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
