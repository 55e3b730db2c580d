// What machines are, and what they can be sold as.

import { refuse } from '#domain/core/refusal.ts'
import type { Node } from '#domain/core/node.ts'
import {
  createHardwareProfile,
  hardwareProfiles,
  removeHardwareProfile,
  reportMachine,
  reportProvisioning,
  tagNode,
} from './change-hardware.ts'
import { hardwareProfileView, machineReportIn, machineView, hardwareApi } from '#wire/fleet/hardware-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { detailOf, type NodeSources } from '#plane/node/operator-node-routes.ts'

export const operatorHardwareRoutes = (core: FlowCore, sources: NodeSources): readonly Route[] =>
  serve(hardwareApi, {
    profiles: async () => answer({ hardware_profiles: (await hardwareProfiles(core.store)).map(hardwareProfileView) }),
    createProfile: (call) => create(core, call),
    removeProfile: async (call) => {
      const done = await removeHardwareProfile(core, call.params.tag, attributionOf(call))
      return done.kind === 'refused' ? done : answer(hardwareProfileView(done.profile))
    },
    machine: async (call) => {
      const node = await core.store.get('node', call.params.id)
      return node === null ? refuse('NODE_NOT_FOUND', call.params.id) : viewOf(core, node.value)
    },
    reportMachine: async (call) => {
      const done = await reportMachine(core, call.params.id, machineReportIn(call.body), attributionOf(call))
      return done.kind === 'refused' ? done : viewOf(core, done.node)
    },
    reportProvisioning: async (call) => {
      const { state, detail = null } = call.body
      const report = state === null ? null : { state, detail }
      const done = await reportProvisioning(core, call.params.id, report, attributionOf(call))
      return done.kind === 'refused' ? done : answer(await detailOf(core, sources, done.node))
    },
    tag: async (call) => {
      const { add = [], remove = [] } = call.body
      const done = await tagNode(core, call.params.id, { add, remove }, attributionOf(call))
      return done.kind === 'refused' ? done : viewOf(core, done.node)
    },
  })

const viewOf = async ({ store }: FlowCore, node: Node) => answer(machineView(node, await hardwareProfiles(store)))

const create = async (core: FlowCore, call: CallOf<typeof hardwareApi.createProfile>) => {
  const { description = '', tags = [], ...asked } = call.body
  const done = await createHardwareProfile(core, { ...asked, description, tags }, attributionOf(call))
  return done.kind === 'refused' ? done : answer(hardwareProfileView(done.profile), 201)
}
