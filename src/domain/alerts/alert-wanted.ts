// What a person should look at, read off what is on record: a node's conditions, and the age of the plane's own
// certificates.

import { isoTime } from '#platform/clock.ts'
import type { Alert, AlertKind } from './alert.ts'
import type { WantedAlert } from './alert-decisions.ts'
import { boundedText } from '#domain/core/decision.ts'
import type { Condition, ConditionName, FormerRevocation, Node } from '#domain/core/node.ts'

type Look = { readonly kind: AlertKind; readonly severity: Alert['severity'] }

/** The other conditions pass by themselves, or are told by metrics. */
const conditionAlerts: Partial<Readonly<Record<ConditionName, Look>>> = {
  stuck_enrollment: { kind: 'stuck_enrollment', severity: 'warning' },
  cert_expired: { kind: 'cert_expired', severity: 'critical' },
  spoof_suspected: { kind: 'spoof_suspected', severity: 'critical' },
  duplicate_identity: { kind: 'duplicate_identity', severity: 'critical' },
  needs_approval: { kind: 'recovery_waits', severity: 'warning' },
  unhealthy: { kind: 'unhealthy', severity: 'warning' },
  overlay_failed: { kind: 'overlay_failed', severity: 'warning' },
  config_drift: { kind: 'config_drift', severity: 'warning' },
  wireguard_failed: { kind: 'wireguard_failed', severity: 'warning' },
  active_elsewhere: { kind: 'active_elsewhere', severity: 'warning' },
}

/** The kinds that follow a node: its conditions, and whether it is in quarantine. */
export const nodeAlertKinds: readonly AlertKind[] = [
  ...Object.values(conditionAlerts).map(({ kind }) => kind),
  'quarantined',
]

export const alertsOfNode = (node: Node): readonly WantedAlert[] => {
  // Nobody has to do anything about a tombstone.
  if (node.membership.kind === 'revoked') return []
  const ofConditions = node.conditions.flatMap((condition) => {
    const look = conditionAlerts[condition.name]
    const { sinceMs } = condition
    return look === undefined
      ? []
      : [{ ...look, subject: node.id, node: node.id, sinceMs, reason: reasonOf(condition) }]
  })
  return [...ofConditions, ...ofQuarantine(node)]
}

/** Whoever put it there, somebody has to look into it: only an operator ends it. */
const ofQuarantine = ({ id, membership }: Node): WantedAlert[] => {
  if (membership.kind !== 'quarantined') return []
  const { sinceMs, reason, by, revokedBefore } = membership
  const told = `${reason} (by ${by})${revokedBefore === undefined ? '' : revokedAgain(id, revokedBefore)}`
  return [{ kind: 'quarantined', severity: 'critical', subject: id, node: id, sinceMs, reason: told }]
}

/** For a node that was revoked, and whose row said otherwise. */
export const revokedAgain = (id: string, { by, reason, atMs }: FormerRevocation): string =>
  `; ${by} revoked it at ${isoTime(atMs)}: ${boundedText(reason, 100)}. Next: muster node revoke ${id}; only if you know better: muster node release ${id}`

/** Of two holders both are named (ruling 6): whoever is woken at night should not have to ask who they are. */
const reasonOf = ({ reason, evidence }: Condition): string => {
  const { claimant, claimant_hardware, holder, holder_hardware } = evidence
  if (claimant === undefined || holder === undefined) return reason
  const named = [claimant, claimant_hardware, holder, holder_hardware].map((part) => boundedText(String(part), 128))
  return `${reason}: ${named[0]}, ${named[1]}; and ${named[2]}, ${named[3]}`
}

/** The kinds that follow the plane's own certificates. */
export const agingAlertKinds: readonly AlertKind[] = [
  'server_certificate_aging',
  'authority_aging',
  'authority_key_lost',
]

export type AgingFacts = {
  /** The certificates listeners present; `subject` names the listener. */
  readonly servers: readonly { readonly subject: string; readonly notBeforeMs: number; readonly notAfterMs: number }[]
  /** What only a person can do about an authority. */
  readonly authorities: readonly { readonly issuer: string; readonly text: string }[]
  /** Keys on record that are gone. */
  readonly lost: readonly { readonly issuer: string; readonly text: string }[]
  /** Whether anything can still be signed. */
  readonly signs: boolean
  readonly nowMs: number
}

/** They are renewed at half life; one that is older shows that renewing fails. */
const overdueAt = 2 / 3
const urgentAt = 9 / 10

export const alertsOfAging = (facts: AgingFacts): readonly WantedAlert[] => [
  ...facts.servers.flatMap((server) => agingServer(server, facts.nowMs)),
  ...agingAuthorities(facts),
  ...facts.lost.map(({ issuer: subject, text: reason }): WantedAlert => ({
    kind: 'authority_key_lost',
    subject,
    node: null,
    severity: 'critical',
    reason,
    sinceMs: null,
  })),
]

const agingServer = (
  { subject, notBeforeMs, notAfterMs }: AgingFacts['servers'][number],
  nowMs: number,
): WantedAlert[] => {
  const age = (nowMs - notBeforeMs) / (notAfterMs - notBeforeMs)
  if (age < overdueAt) return []
  const severity = age < urgentAt ? 'warning' : 'critical'
  const ends = nowMs < notAfterMs ? 'ends' : 'ended'
  const reason = `the server certificate of the ${subject} listener ${ends} ${isoTime(notAfterMs)} and was not renewed at half its life`
  return [{ kind: 'server_certificate_aging', subject, node: null, severity, reason, sinceMs: null }]
}

/** One for each authority, with the first that is to be said of it. */
const agingAuthorities = ({ authorities, signs }: AgingFacts): WantedAlert[] => {
  const firsts = new Map(authorities.toReversed().map(({ issuer, text }) => [issuer, text]))
  return [...firsts].map(([subject, reason]) => ({
    kind: 'authority_aging',
    subject,
    node: null,
    severity: signs ? 'warning' : 'critical',
    reason,
    sinceMs: null,
  }))
}
