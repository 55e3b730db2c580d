import type { Alert } from '#domain/alert.ts'
import { isoTime } from '#platform/clock.ts'
import type { AlertView } from '#wire/alert-api.ts'

export const alertView = ({ id, kind, severity, subject, node, sinceMs, reason, state }: Alert): AlertView => ({
  id,
  kind,
  severity,
  subject,
  node,
  since: isoTime(sinceMs),
  reason,
  state: state.kind,
  acknowledged_by: state.kind === 'acknowledged' ? state.by : null,
  acknowledged_at: state.kind === 'acknowledged' ? isoTime(state.atMs) : null,
  note: state.kind === 'acknowledged' ? state.note : null,
  resolved_at: state.kind === 'resolved' ? isoTime(state.atMs) : null,
})
