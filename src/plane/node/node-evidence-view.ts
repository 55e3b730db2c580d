// Seed 003's operator evidence, from the row of a node and the last report of its agent. Texts come from the node: they
// are cut and cleaned before anybody sees them.

import { boundedText } from '#domain/core/decision.ts'
import type { Node, Repair } from '#domain/core/node.ts'
import { schedulingOf } from '#domain/fleet/scheduling.ts'
import { slotsOf } from '#domain/core/slots.ts'
import { isoTime } from '#platform/clock.ts'
import type { NodeEvidence, RepairView } from '#wire/node/node-evidence.ts'
import type { ReportBody } from '#wire/node/report.ts'

type Failure = ReportBody['renewal']['last_failure']

export const evidenceView = (node: Node, report: ReportBody | null): NodeEvidence => {
  const slots = slotsOf(node)
  const { state, reasons } = schedulingOf(node)
  const excluded = { excluded: state !== 'schedulable', reasons: [...reasons] }
  const onRecord = slots === null ? null : isoTime(slots.current.notAfterMs)
  if (report === null) return { ...notReported, cert_not_after: onRecord, excluded_from_scheduling: excluded }
  const { renewal, recovery, storage, endpoint_set: endpoints } = report
  return {
    reported_at: clean(report.at),
    cert_not_after: onRecord ?? clean(report.certificate.not_after),
    identity_source: report.source,
    clock_skew_ms: report.clock_skew_ms,
    endpoint_set: { id: clean(endpoints.id), revision: endpoints.revision },
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

const failureView = (failure: Failure): Failure =>
  failure === null
    ? null
    : { at: clean(failure.at), class: failure.class, code: clean(failure.code), text: clean(failure.text) }

/** Never the hash: whoever reads it needs it for nothing. */
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
