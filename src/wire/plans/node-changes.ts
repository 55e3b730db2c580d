// Which nodes a plan is for, and what is done to them.

import { Type, type Static } from 'typebox'
import { conditionNames, membershipKinds, provisioningStates } from '#domain/core/node.ts'
import type { NodeChange } from '#domain/plans/node-change.ts'
import { MachineRequest, machineReportIn } from '#wire/fleet/hardware-api.ts'
import { closed, NameText, nodeGlobShape, oneOf, orNull, tagFilterShape, TagText, text } from '#wire/core/shapes.ts'

/** Everything that is given has to hold of a node. Revoked nodes match only by `state` or by their very ids. */
export const NodeSelection = Type.Object(
  {
    /** Ids, and globs over ids with `*` and `?`: one of them matches. */
    names: Type.Optional(Type.Array(Type.String({ pattern: `^${nodeGlobShape}$` }), { minItems: 1, maxItems: 5000 })),
    state: Type.Optional(oneOf(membershipKinds)),
    profile: Type.Optional(text(64)),
    /** `none`: nodes in no vCluster. */
    vcluster: Type.Optional(text(63)),
    condition: Type.Optional(oneOf(conditionNames)),
    /** KEY or KEY=VALUE: the node has all of them. */
    tags: Type.Optional(Type.Array(Type.String({ pattern: `^${tagFilterShape}$` }), { minItems: 1, maxItems: 16 })),
    connected: Type.Optional(Type.Boolean()),
  },
  { ...closed, minProperties: 1 },
)
export type NodeSelection = Static<typeof NodeSelection>

const Reason = text(256)
const Tags = Type.Array(TagText, { maxItems: 64 })

const verb = <const V extends string>(name: V) => Type.Literal(name)

export const NodeChangeBody = Type.Union([
  Type.Object({ verb: oneOf(['drain', 'drained', 'undrain', 'release', 'approve', 'deny']) }, closed),
  Type.Object({ verb: oneOf(['quarantine', 'settle']), reason: Reason }, closed),
  Type.Object({ verb: verb('drop-scrape-address') }, closed),
  Type.Object({ verb: verb('assign'), to: NameText }, closed),
  Type.Object({ verb: verb('move'), to: NameText, force: Type.Optional(Type.Boolean()) }, closed),
  Type.Object({ verb: verb('unassign'), force: Type.Optional(Type.Boolean()) }, closed),
  /** Null: it is healthy again. */
  Type.Object({ verb: verb('health'), unhealthy: orNull(Reason) }, closed),
  Type.Object({ verb: verb('tag'), add: Tags, remove: Tags }, closed),
  Type.Object(
    { verb: verb('machine'), report: Type.Object(MachineRequest.properties, { ...closed, minProperties: 1 }) },
    closed,
  ),
  Type.Object(
    { verb: verb('provisioning'), state: orNull(oneOf(provisioningStates)), detail: Type.Optional(Reason) },
    closed,
  ),
])
export type NodeChangeBody = Static<typeof NodeChangeBody>

export const changeIn = (body: NodeChangeBody): NodeChange => {
  switch (body.verb) {
    case 'move':
    case 'unassign':
      return { ...body, force: body.force ?? false }
    case 'machine':
      return { verb: body.verb, report: machineReportIn(body.report) }
    case 'provisioning':
      return { ...body, detail: body.detail ?? null }
    default:
      return body
  }
}
