// Every kind of alert, declared once: what it is about, how urgent it is, what it says, and what ends it. A source of
// alerts (plane/alerts, and the flows that raise one) gives the evidence; nothing else writes an alert's text.

import { isoTime } from '#platform/clock.ts'
import { boundedText } from '#domain/core/change.ts'
import { durationWords } from '#domain/core/in-words.ts'
import type { Condition, FormerRevocation, Membership, NodeId } from '#domain/core/node.ts'
import { isListUrgent, type ListLength } from './list-length.ts'

export const alertSeverities = ['warning', 'critical'] as const
export type AlertSeverity = (typeof alertSeverities)[number]

type Rule<Evidence> = {
  /** What the subject names. With the kind it is the key of the alert: at most one is unresolved. */
  readonly subject:
    | 'issuer'
    | 'node'
    | 'token'
    | 'listener'
    | 'authority'
    | 'domain'
    | 'replica'
    | 'operator key'
    | 'key'
    | 'key store'
    | 'row'
    | 'cut-off'
  readonly severity: AlertSeverity | ((evidence: Evidence) => AlertSeverity)
  /**
   * `cause`: it is resolved once its source no longer names it. `acknowledgement`: it is about what has happened, so an
   * acknowledgement alone resolves it. `both`: its source resolves it, and only after an operator has acknowledged it.
   */
  readonly endedBy: 'cause' | 'acknowledgement' | 'both'
  readonly reason: (evidence: Evidence) => string
}

const declare = <Evidence>(rule: Rule<Evidence>): Rule<Evidence> => rule

/** The source has a sentence of its own, which is also shown elsewhere. */
const asSaid = (said: string): string => said

/** Opens with a condition of a node and ends with it. The other conditions resolve without a person, or have metrics. */
const ofCondition = (severity: AlertSeverity): Rule<Condition> => ({
  subject: 'node',
  severity,
  endedBy: 'cause',
  reason: conditionWords,
})

/** Two holders are both named (ruling 6): a person who is woken at night should not have to ask who they are. */
const conditionWords = ({ name, reason, evidence }: Condition): string => {
  const { claimant, claimant_hardware, holder, holder_hardware } = evidence
  const because = name === 'service_failed' ? evidence['error'] : name === 'unhealthy' ? evidence['says'] : null
  if (typeof because === 'string') return `${reason}: ${boundedText(because, 128)}`
  if (claimant === undefined || holder === undefined) return reason
  const named = [claimant, claimant_hardware, holder, holder_hardware].map((part) => boundedText(String(part), 128))
  return `${reason}: ${named[0]}, ${named[1]}; and ${named[2]}, ${named[3]}`
}

/** For a node that was revoked, and whose row said otherwise. */
export const revokedAgain = (id: string, { by, reason, atMs }: FormerRevocation): string =>
  `; ${by} revoked it at ${isoTime(atMs)}: ${boundedText(reason, 100)}. Next: muster node revoke ${id}; only if you know better: muster node release ${id}`

const mostNamed = 5
const mostNodesNamed = 8

/** The first items of a list, and the number of the others. */
const firstOf = (list: readonly string[], most: number, separator: string, andMore: string): string => {
  const more = list.length - most
  return `${list.slice(0, most).join(separator)}${more > 0 ? `${andMore}${more} more` : ''}`
}

const putBackWords = (meanwhile: readonly string[] | null): string => {
  if (meanwhile === null) return 'what was revoked meanwhile is not in it: revoke it again'
  if (meanwhile.length === 0) return 'nothing on record was revoked meanwhile'
  return `what was revoked meanwhile is not in it: ${firstOf(meanwhile, mostNamed, '; ', '; and ')}. Revoke it again`
}

/** Server certificates are renewed at half life; one that is older shows that renewing fails. */
const overdueAt = 2 / 3
const urgentAt = 9 / 10

export type CertificateLife = { readonly notBeforeMs: number; readonly notAfterMs: number }

const ageOf = ({ notBeforeMs, notAfterMs, nowMs }: CertificateLife & { readonly nowMs: number }): number =>
  (nowMs - notBeforeMs) / (notAfterMs - notBeforeMs)

export const isOverdue = (life: CertificateLife, nowMs: number): boolean => ageOf({ ...life, nowMs }) >= overdueAt

/** The order is that of the API. */
const rules = {
  stuck_enrollment: ofCondition('warning'),
  cert_expired: ofCondition('critical'),
  /** Opens at that many refusals of one proven identity; ends when it has been quiet for long enough, or is revoked. */
  repeated_failures: declare<{ times: number; minutes: number; code: string; source: string }>({
    subject: 'node',
    severity: 'warning',
    endedBy: 'cause',
    reason: ({ times, minutes, code, source }) =>
      `refused ${times} times within ${minutes} minutes, the last time with ${code} from ${source}`,
  }),
  spoof_suspected: ofCondition('critical'),
  duplicate_identity: ofCondition('critical'),
  /** Opens with the condition `needs_approval`. */
  recovery_waits: ofCondition('warning'),
  server_certificate_aging: declare<CertificateLife & { readonly listener: string; readonly nowMs: number }>({
    subject: 'listener',
    severity: (life) => (ageOf(life) < urgentAt ? 'warning' : 'critical'),
    endedBy: 'cause',
    reason: ({ listener, notAfterMs, nowMs }) =>
      `the server certificate of the ${listener} listener ${nowMs < notAfterMs ? 'ends' : 'ended'} ${isoTime(notAfterMs)} and was not renewed at half its life`,
  }),
  /** Opens when only a person can replace an authority in time. `signs`: whether anything can still be signed. */
  authority_aging: declare<{ readonly text: string; readonly signs: boolean }>({
    subject: 'authority',
    severity: ({ signs }) => (signs ? 'warning' : 'critical'),
    endedBy: 'cause',
    reason: ({ text }) => text,
  }),
  authority_key_lost: declare<string>({ subject: 'authority', severity: 'critical', endedBy: 'cause', reason: asSaid }),
  /** Opens with the doubt, in its commit; ends with the confirmation of the store, in its commit. */
  store_in_doubt: declare<string>({ subject: 'domain', severity: 'critical', endedBy: 'cause', reason: asSaid }),
  /** Opens at the start of a plane whose store holds lost commits again. `meanwhile`: null where no plane wrote it down. */
  store_put_back: declare<{ readonly meanwhile: readonly string[] | null; readonly file: string }>({
    subject: 'domain',
    severity: ({ meanwhile }) => (meanwhile?.length === 0 ? 'warning' : 'critical'),
    endedBy: 'acknowledgement',
    reason: ({ meanwhile, file }) =>
      `the store holds the commits again that it had lost, and is not in doubt any more; ${putBackWords(meanwhile)}. The record is kept as ${file}`,
  }),
  /** Opens while the clock of a replica is further from the database's than is tolerated. */
  clock_off: declare<{ readonly replica: string; readonly offsetMs: number }>({
    subject: 'replica',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ replica, offsetMs }) =>
      `the clock of the plane ${replica} is ${durationWords(Math.abs(offsetMs))} ${offsetMs > 0 ? 'ahead of' : 'behind'} the database's: it decides nothing until that is set right`,
  }),
  /** Opens with every quarantine, of operators and of the plane: only an operator ends it (R-143). */
  quarantined: declare<Extract<Membership, { kind: 'quarantined' }> & { readonly id: NodeId }>({
    subject: 'node',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ id, reason, by, revokedBefore }) =>
      `${reason} (by ${by})${revokedBefore === undefined ? '' : revokedAgain(id, revokedBefore)}`,
  }),
  /** Opens with the halt and ends with the resumption, each in its commit. */
  issuance_halted: declare<string>({ subject: 'domain', severity: 'warning', endedBy: 'cause', reason: asSaid }),
  /** Opens in the commit of the withdrawal; ends when no node lives by a certificate of the authority. */
  authority_compromised: declare<{ readonly issuer: string; readonly domain: string; readonly why: string }>({
    subject: 'authority',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ issuer, domain, why }) =>
      `the authority ${issuer} of ${domain} was withdrawn (${why}): its nodes recover`,
  }),
  /** Opens when a pending cut-off is committed or dropped: an operator has to look at what other replicas let in meanwhile. */
  cut_off_delayed: declare<{ readonly cutOff: string; readonly seconds: number; readonly ending: string }>({
    subject: 'cut-off',
    severity: 'critical',
    endedBy: 'acknowledgement',
    reason: ({ cutOff, seconds, ending }) => `${cutOff} was in force at one replica only for ${seconds} s, ${ending}`,
  }),
  unhealthy: ofCondition('warning'),
  config_drift: ofCondition('warning'),
  service_failed: ofCondition('warning'),
  overlay_failed: ofCondition('warning'),
  wireguard_failed: ofCondition('warning'),
  output_failed: ofCondition('warning'),
  active_elsewhere: ofCondition('warning'),
  /** Opens in the commit of the enrollment. `silentMs`: null where it is not known. */
  superseded_by_hardware: declare<{
    readonly silentMs: number | null
    readonly closedByHolder: boolean
    readonly claimant: string
    readonly holder: string
  }>({
    subject: 'node',
    severity: 'warning',
    endedBy: 'acknowledgement',
    reason: ({ silentMs, closedByHolder, claimant, holder }) =>
      `after ${silentMs === null ? 'some time' : durationWords(silentMs)} ${closedByHolder ? 'without a channel' : 'of silence'} another caller got this identity by its hardware: ${claimant}; before it: ${holder}`,
  }),
  /** Opens when a row is found that grants nothing; ends when it is gone, revoked or good. */
  operator_key_forged: declare<{ id: string; name: string; role: string; isRevoked: boolean }>({
    subject: 'operator key',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ id, name, role, isRevoked }) =>
      `operator key ${id} (${boundedText(name, 64)}, ${boundedText(role, 32)}) grants nothing: ${
        isRevoked
          ? 'the journal says that it was revoked, and its row says otherwise'
          : 'no plane of this domain wrote its row'
      }. Find out who writes to the database; then: muster key revoke ${id}`,
  }),
  /** Opens a week before the end; ends when the key is revoked or has expired. */
  operator_key_expiring: declare<{ id: string; name: string; role: string; expiresAtMs: number }>({
    subject: 'operator key',
    severity: 'warning',
    endedBy: 'cause',
    reason: ({ id, name, role, expiresAtMs }) =>
      `operator key ${id} (${name}, ${role}) expires at ${isoTime(expiresAtMs)}. ` +
      `If it is still needed: muster key create NEW-NAME --role ${role} --expires 90d; then: muster key revoke ${id}`,
  }),
  journal_damaged: declare<{
    readonly chain: string
    readonly from: number
    readonly to: number
    readonly why: string
  }>({
    subject: 'domain',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ chain, from, to, why }) =>
      `chain ${chain}, ${from === to ? `entry ${from}` : `entries ${from} to ${to}`}: ${why}`,
  }),
  /** Fencing a row makes rows and journal agree, so an operator has to have looked before it ends. */
  rows_differ: declare<string>({ subject: 'row', severity: 'critical', endedBy: 'both', reason: asSaid }),
  store_damaged: declare<{ readonly fault: string }>({
    subject: 'domain',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ fault }) =>
      `the database file is damaged: ${fault}. Keep a copy of it, and restore the last good backup`,
  }),
  /** Opens while several nodes hold one key. */
  shared_key: declare<{ readonly nodes: readonly NodeId[] }>({
    subject: 'key',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ nodes }) => `copied image: one private key is on ${firstOf(nodes, mostNodesNamed, ', ', ' and ')}`,
  }),
  /** Opens when a machine brings a key that another node holds. */
  copied_image: declare<{ readonly claimants: string; readonly holders: string; readonly source: string | null }>({
    subject: 'key',
    severity: 'critical',
    endedBy: 'both',
    reason: ({ claimants, holders, source }) =>
      `copied image: ${claimants} brought the key of ${holders}, the last from ${source ?? 'an unknown address'}`,
  }),
  /** Opens when a token that was used comes back with another key. */
  token_reused: declare<{ readonly token: string; readonly usedBy: NodeId; readonly source: string | null }>({
    subject: 'token',
    severity: 'warning',
    endedBy: 'acknowledgement',
    reason: ({ token, usedBy, source }) =>
      `token ${token}, which ${usedBy} has used, came back with another key from ${source ?? 'an unknown address'}: a second machine has its join string, or ${usedBy} was installed anew`,
  }),
  /** One for all machines that no node is registered for: opens when one of them is refused that often, ends when all are quiet. */
  unknown_hardware: declare<{
    readonly machines: string
    readonly times: number
    readonly minutes: number
    readonly hardware: string
    readonly source: string
  }>({
    subject: 'domain',
    severity: 'warning',
    endedBy: 'cause',
    reason: ({ machines, times, minutes, hardware, source }) =>
      `${machines} asked to join by hardware that is not registered, each ${times} times within ${minutes} minutes; the last from ${source}: ${hardware}`,
  }),
  /** Opens when a replica stops asking an outside issuer; ends when the issuer has answered, or is not asked any more. */
  issuer_unavailable: declare<{ readonly issuer: string; readonly why: string }>({
    subject: 'issuer',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ issuer, why }) =>
      `the issuer ${issuer} does not answer: ${why}. Nothing is enrolled or renewed under its profiles; their nodes go on until their certificates end`,
  }),
  /** Opens when an outside issuer has signed, or answered about, something else than it was asked. */
  issuer_violation: declare<{ readonly issuer: string; readonly why: string }>({
    subject: 'issuer',
    severity: 'critical',
    endedBy: 'acknowledgement',
    reason: ({ issuer, why }) =>
      `the issuer ${issuer} has answered with something else than was asked: ${boundedText(why, 300)}. It was not used. Next: find out why, or muster issuer disable ${issuer}`,
  }),
  /** Opens when a third of the life of a login is left and it could not be renewed, or none can be had. */
  issuer_login_ending: declare<{ readonly issuer: string; readonly untilMs: number | null; readonly why: string }>({
    subject: 'issuer',
    severity: ({ untilMs }) => (untilMs === null ? 'critical' : 'warning'),
    endedBy: 'cause',
    reason: ({ issuer, untilMs, why }) =>
      `the login at the issuer ${issuer} ${untilMs === null ? 'fails' : `ends ${isoTime(untilMs)}`}: ${boundedText(why, 200)}`,
  }),
  /** Opens when a key that is in a token or in Vault was needed and could not be used; ends when it can, or its replica is gone. */
  key_unavailable: declare<{ readonly place: string; readonly replica: string; readonly text: string }>({
    subject: 'key store',
    severity: 'critical',
    endedBy: 'cause',
    reason: ({ place, replica, text }) =>
      `the plane ${replica} cannot use keys in ${place}: ${boundedText(text, 300)}. What they sign waits`,
  }),
  /** Opens well before the revocation lists of programs are longer than agents accept. */
  program_lists_long: declare<ListLength>({
    subject: 'domain',
    severity: (length) => (isListUrgent(length) ? 'critical' : 'warning'),
    endedBy: 'cause',
    reason: ({ list, bytes, mostBytes }) =>
      `${list === null ? 'the revocation lists of programs have' : `the revocation list of ${list} has`} ${bytes} bytes, and agents take ${mostBytes}: beyond that they keep the last one, by which programs accept what is denied after it, and refuse everybody once it has ended`,
  }),
}

export type AlertKind = keyof typeof rules

export const alertKinds = Object.keys(rules) as readonly AlertKind[]

export const alertRule = (kind: AlertKind): Pick<Rule<never>, 'severity' | 'endedBy'> => rules[kind]

type EvidenceOf<K extends AlertKind> = (typeof rules)[K] extends Rule<infer Evidence> ? Evidence : never

/** What a person should look at now. */
export type WantedAlert = {
  readonly kind: AlertKind
  /** A node's id, the id of a token or an authority, the hash of a key, or the name of the domain. */
  readonly subject: string
  readonly node: NodeId | null
  readonly severity: AlertSeverity
  readonly reason: string
  /** Null: what it is about has no known beginning, and began when it was first seen. */
  readonly sinceMs: number | null
}

/** `node`: for an alert whose subject is no node and that has to do with one. */
export const wantedAlert = <K extends AlertKind>(
  kind: K,
  subject: string,
  evidence: EvidenceOf<K>,
  { sinceMs = null, node = null }: { readonly sinceMs?: number | null; readonly node?: NodeId | null } = {},
): WantedAlert => {
  const rule: Rule<EvidenceOf<K>> = rules[kind] as never
  return {
    kind,
    subject,
    node: rule.subject === 'node' ? subject : node,
    severity: typeof rule.severity === 'function' ? rule.severity(evidence) : rule.severity,
    reason: rule.reason(evidence),
    sinceMs,
  }
}
