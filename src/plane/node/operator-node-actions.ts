// What operators do to nodes.

import type { Static } from 'typebox'
import type { Refusal } from '#domain/core/refusal.ts'
import { endpointSet, type PlaneUrls } from '#plane/core/configuration.ts'
import { changeNode, type NodeAction } from './change-node.ts'
import { issueRepairBundle, type RepairBundleDeps } from '#plane/recovery/issue-repair-bundle.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { settleNode } from './settle-node.ts'
import { withdrawIdentity, type Withdrawal, type WithdrawDeps } from '#plane/revocation/withdraw-identity.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { receiptView } from '#plane/revocation/receipt-view.ts'
import { DecommissionRequest, DrainRequest, EmptyRequest, NodeDetail, ReasonRequest } from '#wire/api/operator-api.ts'
import { isoTime } from '#platform/clock.ts'
import { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { attributionOf, NodeParams, param } from '#plane/http/operator-call.ts'
import { detailOf, type NodeRoutesDeps } from './operator-node-routes.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

export type NodeActionDeps = NodeRoutesDeps &
  WithdrawDeps &
  RepairBundleDeps & {
    readonly recovery: Pick<RecoveryAuthority, 'roots' | 'statementKeys'>
    readonly urls: () => PlaneUrls
    readonly cutOffs: Pick<PendingCutOffs, 'run'>
  }

export const operatorNodeActions = (deps: NodeActionDeps): readonly Route[] => [
  {
    ...changing('drain', 'Places nothing new on a node; with done, nothing runs there any more'),
    body: DrainRequest,
    handle: (call) => {
      const { done = false } = call.body as Static<typeof DrainRequest>
      return change(deps, call, done ? 'drained' : 'drain')
    },
  },
  {
    ...changing('undrain', 'Lets work onto a node again'),
    handle: (call) => change(deps, call, 'undrain'),
  },
  {
    ...changing('release', 'Ends a quarantine; the node comes back in a new epoch'),
    handle: (call) => change(deps, call, 'release'),
  },
  {
    ...changing('approve', "One person's yes to a node: to its return, or to one recovery more"),
    handle: (call) => change(deps, call, 'approve'),
  },
  {
    ...changing('settle', "One person's word that the machine that is connected now is the right one"),
    body: ReasonRequest,
    handle: (call) => settle(deps, call),
  },
  {
    ...changing('deny', "One person's no to the recoveries of a node, until it is approved"),
    handle: (call) => change(deps, call, 'deny'),
  },
  {
    ...changing('repair-bundle', 'Quarantines a node, and makes the one credential it may recover with'),
    access: 'platform-admin',
    body: ReasonRequest,
    answer: RepairBundle,
    handle: (call) => repairBundle(deps, call),
  },
  {
    ...withdrawing('quarantine', 'Denies the epoch of a node at once and keeps its record', 'operator'),
    cutOff: true,
    body: ReasonRequest,
    handle: (call) => cutOff(deps, call, 'quarantine'),
  },
  {
    ...withdrawing('revoke', 'Takes the identity of a node away for good', 'operator'),
    cutOff: true,
    body: ReasonRequest,
    handle: (call) => cutOff(deps, call, 'revoke'),
  },
  {
    ...withdrawing('decommission', 'Revokes a node that has served its time', 'platform-admin'),
    body: DecommissionRequest,
    handle: (call) => {
      const { force = false } = call.body as Static<typeof DecommissionRequest>
      return withdraw(deps, call, { kind: 'decommission', force })
    },
  },
]

const changing = (action: string, summary: string) =>
  ({
    method: 'POST',
    path: `/v1/nodes/:id/${action}`,
    access: 'operator',
    summary,
    params: NodeParams,
    body: EmptyRequest,
    answer: NodeDetail,
  }) as const

const withdrawing = <A extends 'operator' | 'platform-admin'>(action: string, summary: string, access: A) =>
  ({ ...changing(action, summary), access, answer: ReceiptView }) as const

const change = async (deps: NodeRoutesDeps, call: Call, action: NodeAction): Promise<Answer | Refusal> => {
  const done = await changeNode(deps, param(call, 'id'), action, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node))
}

const settle = async (deps: NodeRoutesDeps, call: Call): Promise<Answer | Refusal> => {
  const done = await settleNode(deps, param(call, 'id'), reasonIn(call), attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node))
}

const withdraw = async (deps: NodeActionDeps, call: Call, withdrawal: Withdrawal): Promise<Answer | Refusal> => {
  const done = await withdrawIdentity(deps, param(call, 'id'), withdrawal, attributionOf(call))
  return done.kind === 'refused' ? done : answer(receiptView(done.receipt, deps.store.replicas.count(), done.entry))
}

/** Where the store cannot commit it, it is in force here, and the refusal says so. */
const cutOff = (deps: NodeActionDeps, call: Call, kind: 'quarantine' | 'revoke'): Promise<Answer | Refusal> => {
  const reason = reasonIn(call)
  const order = { kind, node: param(call, 'id'), reason, by: attributionOf(call) }
  return deps.cutOffs.run(order, (store) => withdraw({ ...deps, store }, call, { kind, reason }))
}

/** The only time the token is shown. */
const repairBundle = async (deps: NodeActionDeps, call: Call): Promise<Answer | Refusal> => {
  const id = param(call, 'id')
  const issued = await issueRepairBundle(deps, id, reasonIn(call), attributionOf(call))
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

const reasonIn = ({ body }: Call): string => (body as Static<typeof ReasonRequest>).reason
