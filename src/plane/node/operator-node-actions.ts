// What operators do to nodes.

import { endpointSet, type PlaneUrls } from '#plane/core/configuration.ts'
import { changeNode, type NodeAction } from './change-node.ts'
import { issueRepairBundle, type RepairBundleDeps } from '#plane/recovery/issue-repair-bundle.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { settleNode } from './settle-node.ts'
import { withdrawIdentity, type Withdrawal, type WithdrawDeps } from '#plane/revocation/withdraw-identity.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { receiptView } from '#wire/revocation/receipt-api.ts'
import { isoTime } from '#platform/clock.ts'
import type { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import { detailOf, type NodeRoutesDeps } from './operator-node-routes.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'

export type NodeActionDeps = NodeRoutesDeps &
  WithdrawDeps &
  RepairBundleDeps & {
    readonly recovery: Pick<RecoveryAuthority, 'roots' | 'statementKeys'>
    readonly urls: () => PlaneUrls
    readonly cutOffs: Pick<PendingCutOffs, 'run'>
  }

export const operatorNodeActions = (deps: NodeActionDeps): readonly Route[] =>
  serve(nodeActionApi, {
    drain: (call) => {
      const { done = false } = call.body
      return change(deps, call, done ? 'drained' : 'drain')
    },
    undrain: (call) => change(deps, call, 'undrain'),
    release: (call) => change(deps, call, 'release'),
    approve: (call) => change(deps, call, 'approve'),
    settle: (call) => settle(deps, call),
    deny: (call) => change(deps, call, 'deny'),
    repairBundle: (call) => repairBundle(deps, call),
    quarantine: (call) => cutOff(deps, call, 'quarantine'),
    revoke: (call) => cutOff(deps, call, 'revoke'),
    decommission: (call) => {
      const { force = false } = call.body
      return withdraw(deps, call, { kind: 'decommission', force })
    },
  })

type ActionOnNode = (typeof nodeActionApi)[keyof typeof nodeActionApi]

const change = async (deps: NodeRoutesDeps, call: CallOf<ActionOnNode>, action: NodeAction) => {
  const done = await changeNode(deps, call.params.id, action, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node))
}

const settle = async (deps: NodeRoutesDeps, call: CallOf<typeof nodeActionApi.settle>) => {
  const done = await settleNode(deps, call.params.id, call.body.reason, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node))
}

const withdraw = async (deps: NodeActionDeps, call: CallOf<ActionOnNode>, withdrawal: Withdrawal) => {
  const done = await withdrawIdentity(deps, call.params.id, withdrawal, attributionOf(call))
  return done.kind === 'refused' ? done : answer(receiptView(done.receipt, deps.store.replicas.count(), done.entry))
}

/** Where the store cannot commit it, it is in force here, and the refusal says so. */
const cutOff = (deps: NodeActionDeps, call: CallOf<typeof nodeActionApi.quarantine>, kind: 'quarantine' | 'revoke') => {
  const { reason } = call.body
  const order = { kind, node: call.params.id, reason, by: attributionOf(call) }
  return deps.cutOffs.run(order, (store) => withdraw({ ...deps, store }, call, { kind, reason }))
}

/** The only time the token is shown. */
const repairBundle = async (deps: NodeActionDeps, call: CallOf<typeof nodeActionApi.repairBundle>) => {
  const { id } = call.params
  const issued = await issueRepairBundle(deps, id, call.body.reason, attributionOf(call))
  if (issued.kind === 'refused') return issued
  const { repair } = issued
  const { id: setId, revision, recovery = [] } = endpointSet(deps.urls())
  return answer({
    kind: 'muster-repair-bundle-1',
    domain: issued.domainName,
    node_id: id,
    recovery_token: issued.secret,
    recovery_urls: recovery,
    recovery_roots: [...deps.recovery.roots()],
    statement_keys: [...deps.recovery.statementKeys()],
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
