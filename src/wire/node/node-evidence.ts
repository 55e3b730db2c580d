// What operators are told about how a node is doing: seed 003's evidence, its story, and whether it would come back by
// itself. Answers only, so nothing here is closed.

import { Type, type Static } from 'typebox'
import { ReportBody } from './report.ts'
import { orNull } from '#wire/core/shapes.ts'

/** Whether the node has shown that it would come back after losing its certificate, and why (not). */
export const Recoverable = Type.Object({ proven: Type.Boolean(), why: Type.String() })
export type Recoverable = Static<typeof Recoverable>

/** Taken from the last report of its agent; null where it has not reported yet. */
export const NodeEvidence = Type.Object({
  reported_at: orNull(Type.String()),
  /** Of the certificate on record, or of the last one its agent named. */
  cert_not_after: orNull(Type.String()),
  identity_source: orNull(ReportBody.properties.source),
  clock_skew_ms: orNull(Type.Integer()),
  endpoint_set: orNull(Type.Object({ id: Type.String(), revision: Type.Integer() })),
  last_exchange: orNull(Type.String()),
  last_renewal_attempt: orNull(Type.String()),
  last_renewal_failure: ReportBody.properties.renewal.properties.last_failure,
  last_recovery_attempt: orNull(Type.String()),
  last_recovery_failure: ReportBody.properties.recovery.properties.last_failure,
  last_rehearsal: ReportBody.properties.rehearsal,
  identity_writable: orNull(Type.Boolean()),
  diagnostics_writable: orNull(Type.Boolean()),
  disk_reserve: orNull(Type.Boolean()),
  free_bytes: orNull(ReportBody.properties.storage.properties.free_bytes),
  excluded_from_scheduling: Type.Object({ excluded: Type.Boolean(), reasons: Type.Array(Type.String()) }),
})
export type NodeEvidence = Static<typeof NodeEvidence>

/** The last repair bundle made for the node, and what became of it. Never its token. */
export const RepairView = Type.Object({
  id: Type.String(),
  by: Type.String(),
  reason: Type.String(),
  issued_at: Type.String(),
  expires_at: Type.String(),
  used_at: orNull(Type.String()),
  evidence: orNull(
    Type.Object({
      passed: Type.Boolean(),
      at: Type.String(),
      checks: Type.Array(Type.Object({ name: Type.String(), ok: Type.Boolean(), detail: Type.String() })),
    }),
  ),
})
export type RepairView = Static<typeof RepairView>

/** `GET /v1/nodes/{id}/explain` */
export const NodeExplanation = Type.Object({
  node: Type.String(),
  /** How it stands, why, and what happens next. */
  sentences: Type.Array(Type.String()),
  /** What led there, oldest first; what belongs to one story stands together. */
  chain: Type.Array(
    Type.Object({
      at: Type.String(),
      what: Type.String(),
      who: Type.String(),
      correlation: orNull(Type.String()),
    }),
  ),
  last_report_at: orNull(Type.String()),
  /** Commands a person could run now; the first is the most likely one. */
  next: Type.Array(Type.String()),
})
export type NodeExplanation = Static<typeof NodeExplanation>

/** `GET /v1/recoverability`: the share of the fleet that is proven recoverable, and why the rest is not. */
export const Recoverability = Type.Object({
  nodes: Type.Integer(),
  proven: Type.Integer(),
  /** Null where there are no nodes. */
  share: orNull(Type.Number()),
  why: Type.Array(Type.Object({ why: Type.String(), count: Type.Integer() })),
})
export type Recoverability = Static<typeof Recoverability>
