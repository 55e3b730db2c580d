// What machines are, and what they can be sold as.

import type { Static } from 'typebox'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Node } from '#domain/core/node.ts'
import {
  createHardwareProfile,
  hardwareProfiles,
  removeHardwareProfile,
  reportMachine,
  tagNode,
} from './change-hardware.ts'
import { hardwareProfileView, machineView } from './machine-view.ts'
import {
  CreateHardwareProfileRequest,
  HardwareProfileList,
  HardwareProfileView,
  MachineRequest,
  MachineView,
  TagParams,
  TagRequest,
} from '#wire/fleet/hardware-api.ts'
import { EmptyRequest } from '#wire/api/operator-api.ts'
import { attributionOf, NodeParams, param } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const operatorHardwareRoutes = (deps: FlowCore): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/hardware-profiles',
    access: 'viewer',
    summary: 'The kinds of machines there are, and what each is sold as',
    answer: HardwareProfileList,
    handle: async () => answer({ hardware_profiles: (await hardwareProfiles(deps.store)).map(hardwareProfileView) }),
  },
  {
    method: 'POST',
    path: '/v1/hardware-profiles',
    access: 'platform-admin',
    summary: 'A new kind: the tag that puts machines under it, and what they need to be sold as it',
    body: CreateHardwareProfileRequest,
    answer: HardwareProfileView,
    handle: (call) => create(deps, call),
  },
  {
    method: 'POST',
    path: '/v1/hardware-profiles/:tag/remove',
    access: 'platform-admin',
    summary: 'From now on its tag is one like any other',
    params: TagParams,
    body: EmptyRequest,
    answer: HardwareProfileView,
    handle: async (call) => {
      const done = await removeHardwareProfile(deps, param(call, 'tag'), attributionOf(call))
      return done.kind === 'refused' ? done : answer(hardwareProfileView(done.profile))
    },
  },
  {
    method: 'GET',
    path: '/v1/nodes/:id/machine',
    access: 'viewer',
    summary: 'Tags, firmware, readiness and slots of a machine, and the SKU they come to now',
    params: NodeParams,
    answer: MachineView,
    handle: async (call) => {
      const node = await deps.store.get('node', param(call, 'id'))
      return node === null ? refuse('NODE_NOT_FOUND', param(call, 'id')) : viewOf(deps, node.value)
    },
  },
  {
    method: 'POST',
    path: '/v1/nodes/:id/machine',
    access: 'operator',
    summary: 'What an adapter or a person reports of a machine; what is left out stays as it was',
    params: NodeParams,
    body: MachineRequest,
    answer: MachineView,
    handle: (call) => report(deps, call),
  },
  {
    method: 'POST',
    path: '/v1/nodes/:id/tags',
    access: 'operator',
    summary: 'Puts tags on a machine and takes them off, in one step',
    params: NodeParams,
    body: TagRequest,
    answer: MachineView,
    handle: async (call) => {
      const { add = [], remove = [] } = call.body as Static<typeof TagRequest>
      const done = await tagNode(deps, param(call, 'id'), { add, remove }, attributionOf(call))
      return done.kind === 'refused' ? done : viewOf(deps, done.node)
    },
  },
]

const viewOf = async ({ store }: FlowCore, node: Node): Promise<Answer> =>
  answer(machineView(node, await hardwareProfiles(store)))

const create = async (deps: FlowCore, call: Call): Promise<Answer | Refusal> => {
  const { description = '', tags = [], ...asked } = call.body as CreateHardwareProfileRequest
  const done = await createHardwareProfile(deps, { ...asked, description, tags }, attributionOf(call))
  return done.kind === 'refused' ? done : answer(hardwareProfileView(done.profile), 201)
}

const report = async (deps: FlowCore, call: Call): Promise<Answer | Refusal> => {
  const { firmware = null, readiness, slots = [], remove_slots: removeSlots = [] } = call.body as MachineRequest
  const done = await reportMachine(
    deps,
    param(call, 'id'),
    {
      firmware,
      readiness: readiness === undefined ? null : { ready: readiness.ready, evidence: readiness.evidence ?? {} },
      slots: slots.map(({ name, state, detail = null }) => ({ name, state, detail })),
      removeSlots,
    },
    attributionOf(call),
  )
  return done.kind === 'refused' ? done : viewOf(deps, done.node)
}
