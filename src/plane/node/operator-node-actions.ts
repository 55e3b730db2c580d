// What operators do to nodes.

import { endpointSet, type PlaneUrls } from '#plane/core/configuration.ts'
import { issueRepairBundle } from '#plane/recovery/issue-repair-bundle.ts'
import { atIssuersIfRead } from '#plane/revocation/at-issuers.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { withdrawIdentity, type Withdrawal } from '#plane/revocation/withdraw-identity.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { receiptView } from '#wire/revocation/receipt-api.ts'
import { isoTime } from '#platform/clock.ts'
import type { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import { detailOf } from './operator-node-routes.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'
import type { OpenChannels, PeerProofs } from '#plane/core/open-channels.ts'
import type { Receipts } from '#plane/revocation/receipts.ts'
import { withStore, type FlowCore } from '#plane/core/core.ts'
import { decideApprove, decideDeny } from '#domain/core/approval.ts'
import type { Attribution, NodeDecided, NodeFacts } from '#domain/core/change.ts'
import { decideDrain, decideDrained, decideUndrain } from '#domain/fleet/drain.ts'
import type { NodeId } from '#domain/core/node.ts'
import { decideRelease } from '#domain/revocation/quarantine.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import { decideSettle } from '#domain/identity/settle.ts'

export type NodeActionParts = {
  readonly channels: OpenChannels
  readonly peers: PeerProofs
  readonly receipts: Pick<Receipts, 'collect'>
  readonly recovery: Pick<RecoveryAuthority, 'roots' | 'statementKeys'>
  readonly urls: () => PlaneUrls
  readonly cutOffs: Pick<PendingCutOffs, 'run'>
}

export const operatorNodeActions = (core: FlowCore, parts: NodeActionParts): readonly Route[] =>
  serve(nodeActionApi, {
    drain: (call) => {
      const { done = false } = call.body
      return change(core, parts, call, done ? 'drained' : 'drain')
    },
    undrain: (call) => change(core, parts, call, 'undrain'),
    release: (call) => change(core, parts, call, 'release'),
    approve: (call) => change(core, parts, call, 'approve'),
    settle: (call) => settle(core, parts, call),
    deny: (call) => change(core, parts, call, 'deny'),
    repairBundle: (call) => repairBundle(core, parts, call),
    quarantine: (call) => cutOff(core, parts, call, { kind: 'quarantine', reason: call.body.reason }),
    revoke: (call) => {
      const { reason, reason_code: reasonCode = 'unspecified' } = call.body
      return cutOff(core, parts, call, { kind: 'revoke', reason, reasonCode })
    },
    decommission: (call) => {
      const { force = false } = call.body
      return withdraw(core, parts, call, { kind: 'decommission', force })
    },
  })

type ActionOnNode = (typeof nodeActionApi)[keyof typeof nodeActionApi]

const change = async (core: FlowCore, parts: NodeActionParts, call: CallOf<ActionOnNode>, action: NodeAction) => {
  const done = await changeNode(core, call.params.id, action, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(core, parts, done.node))
}

const settle = async (core: FlowCore, parts: NodeActionParts, call: CallOf<typeof nodeActionApi.settle>) => {
  const done = await settleNode(core, parts.channels, call.params.id, call.body.reason, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(core, parts, done.node))
}

const withdraw = async (core: FlowCore, parts: NodeActionParts, call: CallOf<ActionOnNode>, withdrawal: Withdrawal) => {
  const done = await withdrawIdentity(core, parts, call.params.id, withdrawal, attributionOf(call))
  if (done.kind === 'refused') return done
  const atIssuers = await atIssuersIfRead(core.store, done.receipt)
  return answer(receiptView(done.receipt, core.store.replicas.count(), done.entry, atIssuers))
}

/** Where the store cannot commit it, it is in force here, and the refusal says so. */
const cutOff = (
  core: FlowCore,
  parts: NodeActionParts,
  call: CallOf<ActionOnNode>,
  withdrawal: Exclude<Withdrawal, { kind: 'decommission' }>,
) => {
  const order = { ...withdrawal, node: call.params.id, by: attributionOf(call) }
  return parts.cutOffs.run(order, (store) => withdraw(withStore(core, store), parts, call, withdrawal))
}

/** The only time the token is shown. */
const repairBundle = async (
  core: FlowCore,
  { channels, recovery: authority, urls }: NodeActionParts,
  call: CallOf<typeof nodeActionApi.repairBundle>,
) => {
  const { id } = call.params
  const issued = await issueRepairBundle(core, channels, id, call.body.reason, attributionOf(call))
  if (issued.kind === 'refused') return issued
  const { repair } = issued
  const { marked, ...served } = urls()
  const { id: setId, revision, recovery = [] } = endpointSet(served)
  return answer({
    kind: 'muster-repair-bundle-1',
    domain: issued.domainName,
    node_id: id,
    recovery_token: issued.secret,
    recovery_urls: recovery,
    recovery_roots: [...authority.roots()],
    statement_keys: [...authority.statementKeys()],
    ...(marked && { marked }),
    endpoint_set: { id: setId, revision },
    issued: {
      id: repair.id,
      by: repair.by,
      reason: repair.reason,
      at: isoTime(repair.issuedAtMs),
      expires_at: isoTime(repair.expiresAtMs),
      journal: issued.entry,
    },
  } satisfies RepairBundle)
}

// What operators do to a node that leaves its identity alone, and lets it back.

export type NodeAction = 'drain' | 'drained' | 'undrain' | 'release' | 'approve' | 'deny'

export const changeNode = (
  core: FlowCore,
  id: NodeId,
  action: NodeAction,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    return decideAction(core, action, { node, by, nowMs: core.clock.nowMs() })
  })

export const decideAction = async (
  { store }: Pick<FlowCore, 'store'>,
  action: NodeAction,
  facts: NodeFacts,
): Promise<NodeDecided | Refusal> => {
  switch (action) {
    case 'drain':
      return decideDrain({ ...facts, allocations: await liveAllocations(store, facts.node.value.id) })
    case 'drained':
      return decideDrained({ ...facts, allocations: await liveAllocations(store, facts.node.value.id) })
    case 'undrain':
      return decideUndrain({ ...facts, allocations: await liveAllocations(store, facts.node.value.id) })
    case 'release':
      return decideRelease(facts)
    case 'deny':
      return decideDeny(facts)
    case 'approve': {
      const { profile: name } = facts.node.value
      const profile = await store.get('profile', name)
      return profile === null ? refuse('PROFILE_NOT_FOUND', name) : decideApprove({ ...facts, profile })
    }
  }
}

// An operator says that of two that claim one identity the machine that is connected now is the right one.

export const settleNode = (
  core: FlowCore,
  channels: Pick<OpenChannels, 'isConnected'>,
  id: NodeId,
  reason: string,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    return decideSettling(core, channels, { node, reason, by, nowMs: core.clock.nowMs() })
  })

export const decideSettling = async (
  { store }: Pick<FlowCore, 'store'>,
  channels: Pick<OpenChannels, 'isConnected'>,
  facts: NodeFacts & { readonly reason: string },
): Promise<NodeDecided | Refusal> => {
  const { id, profile: name } = facts.node.value
  const profile = await store.get('profile', name)
  if (profile === null) return refuse('PROFILE_NOT_FOUND', name)
  return decideSettle({ ...facts, profile, connected: await channels.isConnected(id) })
}
