// The registry: looking at nodes, and registering them.

import type { Static } from 'typebox'
import type { Node, NodeId } from '#domain/node.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import { domainSettingsRow } from '#plane/flows/domain-settings-row.ts'
import type { OpenChannels } from '#plane/flows/open-channels.ts'
import { registerNode, type RegisterDeps } from '#plane/flows/register-node.ts'
import { nodeDetail, nodeView, type Sighting } from '#plane/views/node-view.ts'
import { NodeDetail, NodeListAnswer, NodeListQuery, RegisterRequest } from '#wire/operator-api.ts'
import { attributionOf, NodeParams, param } from './operator-call.ts'
import { answer, type Answer, type Call, type Route } from './route.ts'

export type NodeRoutesDeps = RegisterDeps & { readonly channels: OpenChannels }

const usualPage = 100

export const operatorNodeRoutes = (deps: NodeRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/nodes',
    access: 'viewer',
    summary: 'The registry, page by page in the order of the ids',
    query: NodeListQuery,
    answer: NodeListAnswer,
    handle: (call) => listNodes(deps, call.query),
  },
  {
    method: 'POST',
    path: '/v1/nodes',
    access: 'operator',
    summary: 'Registers a node; nothing outside the registry ever gets a certificate',
    body: RegisterRequest,
    answer: NodeDetail,
    handle: (call) => register(deps, call),
  },
  {
    method: 'GET',
    path: '/v1/nodes/:id',
    access: 'viewer',
    summary: 'All that is known of a node, and why it is in the state it is in',
    params: NodeParams,
    answer: NodeDetail,
    handle: async (call) => {
      const node = await deps.store.get('node', param(call, 'id'))
      return node === null ? refuse('NODE_NOT_FOUND', param(call, 'id')) : answer(await detailOf(deps, node.value))
    },
  },
]

const listNodes = async (deps: NodeRoutesDeps, query: Static<typeof NodeListQuery>): Promise<Answer> => {
  const { membership = null, profile = null, after = null, limit = usualPage } = query
  const rows = await deps.store.nodes({ membership, profile, after, limit })
  const nodes = await Promise.all(rows.map(async ({ value }) => nodeView(value, await sightingOf(deps, value.id))))
  const last = rows.at(-1)
  return answer({ nodes, next: rows.length < limit || last === undefined ? null : last.value.id })
}

const register = async (deps: NodeRoutesDeps, call: Call): Promise<Answer | Refusal> => {
  const { id, profile = null, macs = [], bmc_serial: bmcSerial = null } = call.body as RegisterRequest
  const done = await registerNode(deps, { id, profile, macs, bmcSerial }, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node), 201)
}

const sightingOf = async ({ store, channels }: NodeRoutesDeps, id: NodeId): Promise<Sighting> => ({
  observed: await store.observation(id),
  sessions: channels.openSessions(id),
})

/** A node with its reasons, as every call that changes one answers it. */
export const detailOf = async (deps: NodeRoutesDeps, node: Node): Promise<NodeDetail> => {
  const profile = await deps.store.get('profile', node.profile)
  if (profile === null) throw new Error(`profile ${node.profile} of node ${node.id} is not in the store`)
  const domain = await domainSettingsRow(deps.store)
  return nodeDetail(node, {
    ...(await sightingOf(deps, node.id)),
    profile: profile.value,
    domain: domain.value,
    nowMs: deps.clock.nowMs(),
  })
}
