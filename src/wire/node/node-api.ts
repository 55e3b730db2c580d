// The registry: looking at nodes, and registering them. Times are RFC 3339. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { conditionNames, membershipKinds, provisioningStates } from '#domain/core/node.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import {
  closed,
  deprecated,
  nodeGlobShape,
  NodeIdText,
  NodeParams,
  oneOf,
  orNull,
  tagFilterShape,
  text,
} from '#wire/core/shapes.ts'
import { WireguardView } from '#wire/network/wireguard-view.ts'
import { OutputStandingView } from '#wire/programs/programs-api.ts'
import { NodeEvidence, NodeExplanation, Recoverability, Recoverable, RepairView } from './node-evidence.ts'
import { NodeRuns } from './node-runs.ts'

export const CertificateView = Type.Object({
  slot: oneOf(['current', 'pending', 'retired']),
  issuer: Type.String(),
  serial: Type.String(),
  fingerprint: Type.String(),
  sha256: Type.Optional(deprecated(Type.String(), { use: 'fingerprint' })),
  issued_at: Type.String(),
  not_after: Type.String(),
})

export const ConditionView = Type.Object({
  name: oneOf(conditionNames),
  since: Type.String(),
  reason: Type.String(),
  evidence: recordOf(Type.String(), Type.Unknown()),
})

export const ProvisioningView = Type.Object({
  state: oneOf(provisioningStates),
  detail: orNull(Type.String()),
  since: Type.String(),
  by: Type.String(),
})

/** One line of `node list`. */
export const NodeView = Type.Object({
  id: Type.String(),
  state: oneOf(membershipKinds),
  membership: Type.Optional(deprecated(oneOf(membershipKinds), { use: 'state' })),
  since: Type.String(),
  profile: Type.String(),
  epoch: Type.Integer(),
  assurance: Type.String(),
  vcluster: orNull(Type.String()),
  scheduling: Type.Object({ state: Type.String(), reasons: Type.Array(Type.String()) }),
  /** As an adapter such as MAAS says; null: none looks after it. Left out by planes before 0.4. */
  provisioning: Type.Optional(orNull(ProvisioningView)),
  /** Of the machine. Left out by planes before 0.5. */
  tags: Type.Optional(Type.Array(Type.String())),
  /** How many run there, those included that are asked for. */
  allocations: Type.Integer(),
  /** Of the current certificate. */
  cert_not_after: orNull(Type.String()),
  channel_open: Type.Boolean(),
  last_seen: orNull(Type.String()),
  /** Of its agent, as that last said; null: it never has. Left out of lists by planes before 0.5. */
  agent_version: Type.Optional(orNull(Type.String())),
  conditions: Type.Array(ConditionView),
  recoverable: Recoverable,
  /** What of its row in the database cannot be read; it is shut out. Left out where it can be read. */
  unreadable: Type.Optional(Type.String()),
})
export type NodeView = Static<typeof NodeView>

export const NodeDetail = Type.Object({
  ...NodeView.properties,
  /** Sentences: why the node is in the state it is in, and what could be done. */
  why: Type.Array(Type.String()),
  registered_at: Type.String(),
  registered_by: Type.String(),
  hardware: Type.Object({ macs: Type.Array(Type.String()), bmc_serial: orNull(Type.String()) }),
  /** As the node itself reports it, for comparison when it recovers; left out where nothing is known. */
  reported_hardware: Type.Optional(Type.Object({ macs: Type.Array(Type.String()), bmc_serial: orNull(Type.String()) })),
  facts: orNull(
    Type.Object({
      cpu_cores: Type.Integer(),
      memory_bytes: Type.Integer(),
      disk_bytes: Type.Integer(),
      arch: Type.String(),
    }),
  ),
  certificates: Type.Array(CertificateView),
  approvals: Type.Array(Type.Object({ by: Type.String(), at: Type.String() })),
  agent_version: orNull(Type.String()),
  source: orNull(Type.String()),
  config_revision: orNull(Type.Integer()),
  /** Channels open now, the current one last. */
  sessions: Type.Array(
    Type.Object({ number: Type.Integer(), since: orNull(Type.String()), serial: orNull(Type.String()) }),
  ),
  /** Whether its agent has said over its channel that it takes tasks. Left out where that is not known, or there is no channel. */
  takes_tasks: Type.Optional(Type.Boolean()),
  ...NodeRuns,
  evidence: NodeEvidence,
  repair: orNull(RepairView),
  /** Null: it takes no part in the WireGuard network. Left out by planes that have none. */
  wireguard: Type.Optional(orNull(WireguardView)),
  /** Where a Prometheus may scrape it; null: nowhere. Left out by planes before 0.5. */
  scrape_address: Type.Optional(orNull(Type.String())),
  /** The outputs that are listed for it. Left out by planes of 0.3. */
  programs: Type.Optional(Type.Array(OutputStandingView)),
})
export type NodeDetail = Static<typeof NodeDetail>

/** `GET /v1/nodes` */
export const NodeListQuery = Type.Object(
  {
    state: Type.Optional(oneOf(membershipKinds)),
    membership: Type.Optional(deprecated(oneOf(membershipKinds), { use: 'state' })),
    profile: Type.Optional(text(64)),
    /** `none`: nodes in no vCluster. */
    vcluster: Type.Optional(text(63)),
    /** Ids, and globs over ids with `*` and `?`, separated by commas: one of them matches. */
    name: Type.Optional(Type.String({ pattern: `^${nodeGlobShape}(,${nodeGlobShape}){0,99}$`, maxLength: 4000 })),
    condition: Type.Optional(oneOf(conditionNames)),
    /** KEY or KEY=VALUE, separated by commas: the node has all of them. */
    tag: Type.Optional(Type.String({ pattern: `^${tagFilterShape}(,${tagFilterShape}){0,15}$`, maxLength: 1200 })),
    connected: Type.Optional(oneOf(['yes', 'no'])),
    recoverable: Type.Optional(oneOf(['yes', 'no'])),
    schedulable: Type.Optional(oneOf(['yes', 'no'])),
    after: Type.Optional(NodeIdText),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)
export const NodeListAnswer = Type.Object({ nodes: Type.Array(NodeView), next: orNull(Type.String()) })

/** `POST /v1/nodes` */
export const RegisterRequest = Type.Object(
  {
    id: NodeIdText,
    profile: Type.Optional(text(64)),
    macs: Type.Optional(Type.Array(text(17), { maxItems: 64 })),
    bmc_serial: Type.Optional(text(128)),
  },
  closed,
)
export type RegisterRequest = Static<typeof RegisterRequest>

export const nodeApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/nodes',
    access: 'viewer',
    summary: 'The registry, page by page in the order of the ids',
    query: NodeListQuery,
    answer: NodeListAnswer,
  }),
  register: endpoint({
    method: 'POST',
    path: '/v1/nodes',
    access: 'operator',
    summary: 'Registers a node; nothing outside the registry ever gets a certificate',
    body: RegisterRequest,
    answer: NodeDetail,
    example: {
      status: 201,
      request: { id: 'gpu-001', profile: 'gpu-cloud', macs: ['aa:bb:cc:dd:ee:01'], bmc_serial: 'SN-4711' },
    },
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id',
    access: 'viewer',
    summary: 'All that is known of a node, and why it is in the state it is in',
    params: NodeParams,
    answer: NodeDetail,
  }),
  explain: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id/explain',
    access: 'viewer',
    summary: 'What led to the state of a node, what happens next, and what an operator could do',
    params: NodeParams,
    answer: NodeExplanation,
  }),
  recoverability: endpoint({
    method: 'GET',
    path: '/v1/recoverability',
    access: 'viewer',
    summary: 'Which share of the fleet is proven to recover without an operator, and why the rest is not',
    answer: Recoverability,
  }),
}
