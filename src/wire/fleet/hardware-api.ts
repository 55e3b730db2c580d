// Hardware profiles and what is known of machines, between operators, adapters and the plane.

import { Type, type Static } from 'typebox'
import { resourceStates, type HardwareProfile } from '#domain/core/hardware-profile.ts'
import { type Node, provisioningStates } from '#domain/core/node.ts'
import { skuOf, type MachineReport } from '#domain/fleet/hardware-rules.ts'
import { isoTime } from '#platform/clock.ts'
import { recordOf } from '#platform/json-schema.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, NodeParams, orNull, TagText } from '#wire/core/shapes.ts'
import { NodeDetail } from '#wire/node/node-api.ts'

const Evidence = recordOf(
  Type.String({ pattern: '^[a-z0-9_]{1,40}$' }),
  Type.Union([Type.String({ maxLength: 128 }), Type.Number(), Type.Null()]),
  { maxProperties: 32 },
)
const resourceState = Type.Enum([...resourceStates])

const Word = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' })

/** `POST /v1/hardware-profiles` */
export const CreateHardwareProfileRequest = Type.Object(
  {
    tag: TagText,
    description: Type.Optional(Type.String({ maxLength: 256 })),
    firmware: Word,
    tags: Type.Optional(Type.Array(TagText, { maxItems: 32 })),
    slots: Type.Integer({ minimum: 0, maximum: 64 }),
    sku: Word,
  },
  closed,
)
export type CreateHardwareProfileRequest = Static<typeof CreateHardwareProfileRequest>

export const HardwareProfileView = Type.Object({
  tag: Type.String(),
  description: Type.String(),
  firmware: Type.String(),
  tags: Type.Array(Type.String()),
  slots: Type.Integer(),
  sku: Type.String(),
  created_at: Type.String(),
  created_by: Type.String(),
})
export type HardwareProfileView = Static<typeof HardwareProfileView>
export const HardwareProfileList = Type.Object({ hardware_profiles: Type.Array(HardwareProfileView) })

const TagParams = Type.Object({ tag: TagText }, closed)

/** `POST /v1/nodes/{id}/tags` */
export const TagRequest = Type.Object(
  {
    add: Type.Optional(Type.Array(TagText, { maxItems: 64 })),
    remove: Type.Optional(Type.Array(TagText, { maxItems: 64 })),
  },
  closed,
)

/** `POST /v1/nodes/{id}/machine`: what is left out stays as it was. */
export const MachineRequest = Type.Object(
  {
    firmware: Type.Optional(Word),
    readiness: Type.Optional(Type.Object({ ready: Type.Boolean(), evidence: Type.Optional(Evidence) }, closed)),
    slots: Type.Optional(
      Type.Array(
        Type.Object(
          { name: Word, state: resourceState, detail: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })) },
          closed,
        ),
        { maxItems: 64 },
      ),
    ),
    remove_slots: Type.Optional(Type.Array(Word, { maxItems: 64 })),
  },
  closed,
)
export type MachineRequest = Static<typeof MachineRequest>

export const machineReportIn = (body: MachineRequest): MachineReport => {
  const { firmware = null, readiness, slots = [], remove_slots: removeSlots = [] } = body
  return {
    firmware,
    readiness: readiness === undefined ? null : { ready: readiness.ready, evidence: readiness.evidence ?? {} },
    slots: slots.map(({ name, state, detail = null }) => ({ name, state, detail })),
    removeSlots,
  }
}

/** `POST /v1/nodes/{id}/provisioning`. `state` null: no adapter looks after the machine any more. */
export const ProvisioningRequest = Type.Object(
  {
    state: orNull(Type.Enum([...provisioningStates])),
    detail: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  },
  closed,
)

/** `GET /v1/nodes/{id}/machine`, and the answer to every change of it. */
export const MachineView = Type.Object({
  node: Type.String(),
  tags: Type.Array(Type.String()),
  firmware: orNull(Type.String()),
  readiness: orNull(Type.Object({ ready: Type.Boolean(), evidence: Evidence, by: Type.String(), at: Type.String() })),
  slots: Type.Array(
    Type.Object({
      name: Type.String(),
      state: resourceState,
      detail: orNull(Type.String()),
      since: Type.String(),
    }),
  ),
  /** Derived now; null: see `why`. */
  sku: orNull(Type.String()),
  hardware_profile: orNull(Type.String()),
  why: Type.Array(Type.String()),
})
export type MachineView = Static<typeof MachineView>

export const hardwareProfileView = (profile: HardwareProfile): HardwareProfileView => ({
  tag: profile.tag,
  description: profile.description,
  firmware: profile.firmware,
  tags: [...profile.tags],
  slots: profile.slots,
  sku: profile.sku,
  created_at: isoTime(profile.createdAtMs),
  created_by: profile.createdBy,
})

export const machineView = ({ id, machine }: Node, profiles: readonly HardwareProfile[]): MachineView => {
  const { sku, profile, why } = skuOf(machine, profiles)
  const { readiness } = machine
  return {
    node: id,
    tags: [...machine.tags],
    firmware: machine.firmware,
    readiness:
      readiness === null
        ? null
        : {
            ready: readiness.ready,
            evidence: { ...readiness.evidence },
            by: readiness.by,
            at: isoTime(readiness.atMs),
          },
    slots: machine.slots.map(({ name, state, detail, sinceMs }) => ({ name, state, detail, since: isoTime(sinceMs) })),
    sku,
    hardware_profile: profile,
    why: [...why],
  }
}

export const hardwareApi = {
  profiles: endpoint({
    method: 'GET',
    path: '/v1/hardware-profiles',
    access: 'viewer',
    summary: 'The kinds of machines there are, and what each is sold as',
    answer: HardwareProfileList,
  }),
  createProfile: endpoint({
    method: 'POST',
    path: '/v1/hardware-profiles',
    access: 'platform-admin',
    summary: 'A new kind: the tag that puts machines under it, and what they need to be sold as it',
    body: CreateHardwareProfileRequest,
    answer: HardwareProfileView,
  }),
  removeProfile: endpoint({
    method: 'POST',
    path: '/v1/hardware-profiles/:tag/remove',
    access: 'platform-admin',
    summary: 'From now on its tag is one like any other',
    params: TagParams,
    body: EmptyRequest,
    answer: HardwareProfileView,
  }),
  machine: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id/machine',
    access: 'viewer',
    summary: 'Tags, firmware, readiness and slots of a machine, and the SKU they come to now',
    params: NodeParams,
    answer: MachineView,
  }),
  reportMachine: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/machine',
    access: 'operator',
    summary: 'What an adapter or an operator reports of a machine; what is left out stays as it was',
    params: NodeParams,
    body: MachineRequest,
    answer: MachineView,
  }),
  reportProvisioning: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/provisioning',
    access: 'operator',
    summary:
      'How far an adapter such as MAAS has brought a machine: work is placed on it only when it is deployed; safe to repeat',
    params: NodeParams,
    body: ProvisioningRequest,
    answer: NodeDetail,
  }),
  tag: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/tags',
    access: 'operator',
    summary: 'Puts tags on a machine and takes them off, in one step',
    params: NodeParams,
    body: TagRequest,
    answer: MachineView,
  }),
}
