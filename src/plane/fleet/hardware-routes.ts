// What machines are, and what they can be sold as.

import { refuse } from '#domain/core/refusal.ts'
import type { Node } from '#domain/core/node.ts'
import {
  createHardwareProfile,
  hardwareProfiles,
  removeHardwareProfile,
  reportMachine,
  tagNode,
} from './change-hardware.ts'
import { hardwareProfileView, machineView, hardwareApi } from '#wire/fleet/hardware-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const operatorHardwareRoutes = (deps: FlowCore): readonly Route[] =>
  serve(hardwareApi, {
    profiles: async () => answer({ hardware_profiles: (await hardwareProfiles(deps.store)).map(hardwareProfileView) }),
    createProfile: (call) => create(deps, call),
    removeProfile: async (call) => {
      const done = await removeHardwareProfile(deps, call.params.tag, attributionOf(call))
      return done.kind === 'refused' ? done : answer(hardwareProfileView(done.profile))
    },
    machine: async (call) => {
      const node = await deps.store.get('node', call.params.id)
      return node === null ? refuse('NODE_NOT_FOUND', call.params.id) : viewOf(deps, node.value)
    },
    reportMachine: (call) => report(deps, call),
    tag: async (call) => {
      const { add = [], remove = [] } = call.body
      const done = await tagNode(deps, call.params.id, { add, remove }, attributionOf(call))
      return done.kind === 'refused' ? done : viewOf(deps, done.node)
    },
  })

const viewOf = async ({ store }: FlowCore, node: Node) => answer(machineView(node, await hardwareProfiles(store)))

const create = async (deps: FlowCore, call: CallOf<typeof hardwareApi.createProfile>) => {
  const { description = '', tags = [], ...asked } = call.body
  const done = await createHardwareProfile(deps, { ...asked, description, tags }, attributionOf(call))
  return done.kind === 'refused' ? done : answer(hardwareProfileView(done.profile), 201)
}

const report = async (deps: FlowCore, call: CallOf<typeof hardwareApi.reportMachine>) => {
  const { firmware = null, readiness, slots = [], remove_slots: removeSlots = [] } = call.body
  const done = await reportMachine(
    deps,
    call.params.id,
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
