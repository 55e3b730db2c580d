// What the routes of the operator plane have in common.

import { Type } from 'typebox'
import type { Attribution } from '#domain/core/decision.ts'
import { actorOf, type OperatorPrincipal } from '#domain/core/principal.ts'
import { domainNameShape } from '#wire/core/join-string.ts'
import { NodeIdText } from '#wire/api/node-api.ts'
import type { Call } from './route.ts'

/** In whose name a change is decided. */
export const attributionOf = ({ principal, correlation }: Call): Attribution => ({
  actor: actorOf(principal),
  source: principal.source,
  correlation,
})

/** The access of these routes lets nobody but operators through. */
export const operatorOf = ({ principal }: Call): OperatorPrincipal => {
  if (principal.kind !== 'operator') throw new Error('a route for operators was reached by somebody else')
  return principal
}

const closed = { additionalProperties: false } as const

export const NodeParams = Type.Object({ id: NodeIdText }, closed)
export const IdParams = Type.Object({ id: Type.String({ pattern: '^[0-9A-Za-z_-]{1,64}$' }) }, closed)
export const NameParams = Type.Object({ name: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' }) }, closed)

const domainName = Type.String({ pattern: domainNameShape.source, maxLength: 253 })
export const DomainParams = Type.Object({ name: domainName }, closed)

/** The part of the path that the route's schema has checked. */
export const param = (call: Call, name: string): string => {
  const value = call.params[name]
  if (value === undefined) throw new Error(`the path of this route has no :${name}`)
  return value
}
