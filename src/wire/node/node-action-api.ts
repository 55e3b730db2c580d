// What operators do to nodes.

import { Type } from 'typebox'
import { revocationReasons } from '#domain/core/certificate.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, NodeParams, oneOf, ReasonRequest } from '#wire/core/shapes.ts'
import { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { exampleReceipt, ReceiptView } from '#wire/revocation/receipt-api.ts'
import { NodeDetail } from './node-api.ts'

/** `POST /v1/nodes/{id}/drain`; `done` says that nothing runs there any more. */
export const DrainRequest = Type.Object({ done: Type.Optional(Type.Boolean()) }, closed)
/** `POST /v1/nodes/{id}/decommission` */
export const DecommissionRequest = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed)

/** `POST /v1/nodes/{id}/revoke`; `reason_code` is what CRLs and OCSP say, `unspecified` where it is left out. */
export const RevokeRequest = Type.Object(
  { ...ReasonRequest.properties, reason_code: Type.Optional(oneOf(revocationReasons)) },
  closed,
)

const changing = <const A extends string>(action: A, summary: string) =>
  ({
    method: 'POST',
    path: `/v1/nodes/:id/${action}`,
    access: 'operator',
    summary,
    params: NodeParams,
    body: EmptyRequest,
    answer: NodeDetail,
  }) as const

const withdrawing = <const A extends string, const R extends 'operator' | 'platform-admin'>(
  action: A,
  summary: string,
  access: R,
) => ({ ...changing(action, summary), access, answer: ReceiptView }) as const

export const nodeActionApi = {
  drain: endpoint({
    ...changing('drain', 'Places nothing new on a node; with done, nothing runs there any more'),
    body: DrainRequest,
    example: { request: { done: false } },
  }),
  undrain: endpoint({
    ...changing('undrain', 'Lets work onto a node again'),
  }),
  release: endpoint({
    ...changing('release', 'Ends a quarantine; the node comes back in a new epoch'),
  }),
  approve: endpoint({
    ...changing('approve', 'Approves the return of a node, or one more recovery; one approval for each operator'),
  }),
  settle: endpoint({
    ...changing('settle', 'Resolves a duplicate identity: the machine that is connected now keeps it'),
    body: ReasonRequest,
  }),
  deny: endpoint({
    ...changing('deny', 'Denies a node its recovery, until it is approved'),
  }),
  repairBundle: endpoint({
    ...changing('repair-bundle', 'Quarantines a node, and makes the one credential it may recover with'),
    access: 'platform-admin',
    body: ReasonRequest,
    answer: RepairBundle,
  }),
  quarantine: endpoint({
    ...withdrawing('quarantine', 'Denies the epoch of a node at once and keeps its record', 'operator'),
    cutOff: true,
    body: ReasonRequest,
    example: { request: { reason: 'two machines with one identity' }, answer: exampleReceipt },
  }),
  revoke: endpoint({
    ...withdrawing('revoke', 'Takes the identity of a node away for good', 'operator'),
    cutOff: true,
    body: RevokeRequest,
    example: { request: { reason: 'stolen', reason_code: 'key-compromise' }, answer: exampleReceipt },
  }),
  decommission: endpoint({
    ...withdrawing('decommission', 'Revokes a node that has served its time', 'platform-admin'),
    body: DecommissionRequest,
    example: { request: { force: false }, answer: exampleReceipt },
  }),
}
