// How operators see the health of a node: the evidence of document 003, its history, and whether it would recover without an
// operator. Answers only, so no schema here is closed. Text from a node is cut and cleaned before it is shown.

import { Type, type Static } from 'typebox'
import { boundedText } from '#domain/core/change.ts'
import type { Node, Repair } from '#domain/core/node.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import { schedulingOf } from '#domain/fleet/scheduling.ts'
import { isoTime } from '#platform/clock.ts'
import { orNull } from '#wire/core/shapes.ts'
import { Connection, ReportBody } from './report.ts'

/** Whether the node has shown that it would come back after losing its certificate, and why (not). */
export const Recoverable = Type.Object({ proven: Type.Boolean(), why: Type.String() })
export type Recoverable = Static<typeof Recoverable>

/** Taken from the last report of its agent; null where it has not reported yet. */
export const NodeEvidence = Type.Object({
  reported_at: orNull(Type.String()),
  /** Of the certificate in the store, or of the last one its agent named. */
  cert_not_after: orNull(Type.String()),
  identity_source: orNull(ReportBody.properties.source),
  clock_skew_ms: orNull(Type.Integer()),
  endpoint_set: orNull(Type.Object({ id: Type.String(), revision: Type.Integer() })),
  /** Null from an agent before 0.4; left out by planes before 0.4. */
  connection: Type.Optional(orNull(Connection)),
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
  /** Its state, the reason, and what happens next. */
  sentences: Type.Array(Type.String()),
  /** What led there, oldest first; entries of one episode have the same `correlation`. */
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

type Failure = ReportBody['renewal']['last_failure']

export const evidenceView = (node: Node, report: ReportBody | null): NodeEvidence => {
  const slots = slotsOf(node)
  const { state, reasons } = schedulingOf(node)
  const excluded = { excluded: state !== 'schedulable', reasons: [...reasons] }
  const stored = slots === null ? null : isoTime(slots.current.notAfterMs)
  if (report === null) return { ...notReported, cert_not_after: stored, excluded_from_scheduling: excluded }
  const { renewal, recovery, storage, endpoint_set: endpoints } = report
  return {
    reported_at: clean(report.at),
    cert_not_after: stored ?? clean(report.certificate.not_after),
    identity_source: report.source,
    clock_skew_ms: report.clock_skew_ms,
    endpoint_set: { id: clean(endpoints.id), revision: endpoints.revision },
    connection: report.connection === undefined ? null : connectionView(report.connection),
    last_exchange: cleanOrNull(report.last_exchange),
    last_renewal_attempt: cleanOrNull(renewal.last_attempt),
    last_renewal_failure: failureView(renewal.last_failure),
    last_recovery_attempt: cleanOrNull(recovery.last_attempt),
    last_recovery_failure: failureView(recovery.last_failure),
    last_rehearsal:
      report.rehearsal === null
        ? null
        : { ...report.rehearsal, at: clean(report.rehearsal.at), why: cleanOrNull(report.rehearsal.why) },
    identity_writable: storage.identity_writable,
    diagnostics_writable: storage.diagnostics_writable,
    disk_reserve: storage.reserve,
    free_bytes: { ...storage.free_bytes },
    excluded_from_scheduling: excluded,
  }
}

const notReported: Omit<NodeEvidence, 'cert_not_after' | 'excluded_from_scheduling'> = {
  reported_at: null,
  identity_source: null,
  clock_skew_ms: null,
  endpoint_set: null,
  connection: null,
  last_exchange: null,
  last_renewal_attempt: null,
  last_renewal_failure: null,
  last_recovery_attempt: null,
  last_recovery_failure: null,
  last_rehearsal: null,
  identity_writable: null,
  diagnostics_writable: null,
  disk_reserve: null,
  free_bytes: null,
}

const clean = (text: string): string => boundedText(text, 512)
const cleanOrNull = (text: string | null): string | null => (text === null ? null : clean(text))

const connectionView = ({ runtime, recovery, channel, ...roots }: Connection): Connection => ({
  ...{ runtime: runtime.map(clean), recovery: recovery.map(clean), channel: cleanOrNull(channel) },
  ...roots,
})

const failureView = (failure: Failure): Failure =>
  failure === null
    ? null
    : { at: clean(failure.at), class: failure.class, code: clean(failure.code), text: clean(failure.text) }

/** Without the hash, which no reader needs. */
export const repairView = (repair: Repair | null): RepairView | null => {
  if (repair === null) return null
  const { id, by, reason, issuedAtMs, expiresAtMs, usedBy, evidence } = repair
  return {
    ...{ id, by, reason, issued_at: isoTime(issuedAtMs), expires_at: isoTime(expiresAtMs) },
    used_at: usedBy === null ? null : isoTime(usedBy.atMs),
    evidence:
      evidence === null
        ? null
        : {
            passed: evidence.passed,
            at: isoTime(evidence.atMs),
            checks: evidence.checks.map(({ name, ok, detail }) => ({ name, ok, detail })),
          },
  }
}
