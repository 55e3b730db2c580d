// What a person should look at, read off what is in the store: a node's conditions, and the age of the plane's own
// certificates.

import { isOverdue, wantedAlert, type AlertKind, type CertificateLife, type WantedAlert } from './alert-kinds.ts'
import type { Condition, ConditionName, Node } from '#domain/core/node.ts'

/** The conditions of a node that have an alert, and which. */
const conditionAlerts = {
  stuck_enrollment: 'stuck_enrollment',
  cert_expired: 'cert_expired',
  spoof_suspected: 'spoof_suspected',
  duplicate_identity: 'duplicate_identity',
  needs_approval: 'recovery_waits',
  unhealthy: 'unhealthy',
  overlay_failed: 'overlay_failed',
  config_drift: 'config_drift',
  service_failed: 'service_failed',
  wireguard_failed: 'wireguard_failed',
  active_elsewhere: 'active_elsewhere',
  output_failed: 'output_failed',
} as const satisfies Partial<Readonly<Record<ConditionName, AlertKind>>>

/** The kinds that follow a node: its conditions, and whether it is in quarantine. */
export const nodeAlertKinds: readonly AlertKind[] = [...Object.values(conditionAlerts), 'quarantined']

export const alertsOfNode = (node: Node): readonly WantedAlert[] => {
  const { id, membership, conditions } = node
  // A revoked node needs no action.
  if (membership.kind === 'revoked') return []
  return [
    ...conditions.flatMap((condition) => {
      const kind = kindOf(condition)
      return kind === undefined ? [] : [wantedAlert(kind, id, condition, { sinceMs: condition.sinceMs })]
    }),
    ...(membership.kind === 'quarantined'
      ? [wantedAlert('quarantined', id, { ...membership, id }, { sinceMs: membership.sinceMs })]
      : []),
  ]
}

const kindOf = ({ name }: Condition) =>
  (conditionAlerts as Partial<Record<ConditionName, (typeof conditionAlerts)[keyof typeof conditionAlerts]>>)[name]

/** The kinds that follow the plane's own certificates. */
export const agingAlertKinds: readonly AlertKind[] = [
  'server_certificate_aging',
  'authority_aging',
  'authority_key_lost',
]

export type AgingFacts = {
  /** The certificates listeners present; `subject` names the listener. */
  readonly servers: readonly (CertificateLife & { readonly subject: string })[]
  /** What only a person can do about an authority. */
  readonly authorities: readonly { readonly issuer: string; readonly text: string }[]
  /** Keys that the store names and that are gone. */
  readonly lost: readonly { readonly issuer: string; readonly text: string }[]
  /** Whether anything can still be signed. */
  readonly signs: boolean
  readonly nowMs: number
}

export const alertsOfAging = ({ servers, authorities, lost, signs, nowMs }: AgingFacts): readonly WantedAlert[] => {
  // One for each authority, with the first that is to be said of it.
  const firsts = new Map(authorities.toReversed().map(({ issuer, text }) => [issuer, text]))
  return [
    ...servers
      .filter((life) => isOverdue(life, nowMs))
      .map((life) => wantedAlert('server_certificate_aging', life.subject, { ...life, listener: life.subject, nowMs })),
    ...[...firsts].map(([issuer, text]) => wantedAlert('authority_aging', issuer, { text, signs })),
    ...lost.map(({ issuer, text }) => wantedAlert('authority_key_lost', issuer, text)),
  ]
}
