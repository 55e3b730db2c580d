import { acknowledgementOf, type Alert } from '#domain/alerts/alert.ts'
import { isoTime } from '#platform/clock.ts'
import type { AlertView } from '#wire/alerts/alert-api.ts'

export const alertView = ({ id, kind, severity, subject, node, sinceMs, reason, state }: Alert): AlertView => {
  const acknowledged = acknowledgementOf(state)
  return {
    id,
    kind,
    severity,
    subject,
    node,
    since: isoTime(sinceMs),
    reason,
    state: state.kind,
    acknowledged_by: acknowledged?.by ?? null,
    acknowledged_at: acknowledged === null ? null : isoTime(acknowledged.atMs),
    note: acknowledged?.note ?? null,
    resolved_at: state.kind === 'resolved' ? isoTime(state.atMs) : null,
  }
}
