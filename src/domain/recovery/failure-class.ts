// Why a node is not connected, in nine words. One pure function from what was observed to a class, with the evidence and
// what an operator does next; nothing is retried before it has been asked.

import { isoTime } from '#platform/clock.ts'
import { durationWords } from '#domain/core/in-words.ts'
import type { FailureClass } from '#domain/core/node.ts'
import type { RetryClass } from '#domain/core/refusal-table.ts'

/** What a connection or a call was for. Enrollment counts as recovery: it is the way back in. */
export type Purpose = 'runtime' | 'recovery'

/** What can be seen of a failure. The times are those the agent believes, not what its machine's clock says. */
export type Observed =
  /** No answer, or the name does not resolve. `code` is the system's. */
  | {
      readonly kind: 'no-answer'
      readonly code: string
      readonly url: string
      readonly address: string | null
      readonly lastGoodTried: number
    }
  /** The name is lost; the plane was reached at an address that is remembered. */
  | { readonly kind: 'lost-name'; readonly name: string; readonly code: string; readonly address: string }
  /** The plane answers, and its certificate does not have the name by which it was called. */
  | { readonly kind: 'wrong-name'; readonly name: string; readonly url: string; readonly for: Purpose }
  /** A server answers and cannot prove that it is the plane. */
  | { readonly kind: 'server-untrusted'; readonly code: string; readonly url: string; readonly for: Purpose }
  /** It is the plane in everything but the dates of its certificates. `stated`: the time is the plane's own, signed. */
  | {
      readonly kind: 'server-dates'
      readonly url: string
      readonly for: Purpose
      readonly nowMs: number
      readonly validity: { readonly notBeforeMs: number; readonly notAfterMs: number } | null
      readonly stated: boolean
    }
  /** Our own certificate is of no use at this time. */
  | { readonly kind: 'own-certificate'; readonly serial: string; readonly notAfterMs: number; readonly nowMs: number }
  /** The plane said no. `certificate`: the one we showed, if any. */
  | {
      readonly kind: 'refused'
      /** As it was sent, for the evidence. */
      readonly code: string
      readonly retry: RetryClass
      readonly at: Purpose
      readonly certificate: { readonly notAfterMs: number; readonly nowMs: number } | null
    }
  /** A file of ours could not be written. */
  | { readonly kind: 'write-failed'; readonly errno: string; readonly path: string }
  /** A key or a certificate of ours, as it is on the disk, cannot be used. `part`: which of them. */
  | {
      readonly kind: 'damaged-credentials'
      readonly part: 'current' | 'recovery' | 'file'
      readonly fault: string
      readonly serial: string | null
    }
  /** This machine's clock is off by more than is tolerated; above 0 it is behind. */
  | { readonly kind: 'skew'; readonly skewMs: number; readonly toleranceMs: number }

export type Evidence = Readonly<Record<string, string | number | null>>

export type Classified = {
  readonly class: FailureClass
  readonly evidence: Evidence
  /** For the operator; names a command. */
  readonly next: string
}

/**
 * Of several observations the one that explains the others: a full disk or a wrong clock makes networks and credentials
 * look broken, and never the other way round.
 */
export const classify = (...observed: readonly [Observed, ...Observed[]]): Classified => {
  const [first, ...rest] = observed
  return rest.map(classifyOne).reduce((best, next) => (rank(next) < rank(best) ? next : best), classifyOne(first))
}

export const precedence: readonly FailureClass[] = [
  'disk_full',
  'clock_skew',
  // A damaged key makes every connection fail, and no connection damages a key.
  'credentials_damaged',
  'identity_revoked_or_fenced',
  'recovery_enrollment_blocked',
  'cert_expired',
  'server_tls_untrusted',
  'endpoint_profile_drift',
  'endpoint_unreachable',
]
const rank = (classified: Classified): number => precedence.indexOf(classified.class)

const classifyOne = (seen: Observed): Classified => {
  switch (seen.kind) {
    case 'no-answer': {
      const evidence = { code: seen.code, url: seen.url, address: seen.address, last_good_tried: seen.lastGoodTried }
      return named('endpoint_unreachable', evidence)
    }
    case 'lost-name':
      return named('endpoint_profile_drift', { name: seen.name, code: seen.code, address: seen.address })
    case 'wrong-name': {
      const evidence = { name: seen.name, code: 'wrong-name', url: seen.url }
      const verdict = named(
        seen.for === 'recovery' ? 'recovery_enrollment_blocked' : 'endpoint_profile_drift',
        evidence,
      )
      return { ...verdict, next: renamedPlane }
    }
    case 'server-untrusted': {
      const blocked = seen.for === 'recovery'
      return named(blocked ? 'recovery_enrollment_blocked' : 'server_tls_untrusted', { code: seen.code, url: seen.url })
    }
    case 'server-dates':
      return ofServerDates(seen)
    case 'own-certificate': {
      const evidence = { serial: seen.serial, not_after: isoTime(seen.notAfterMs), now: isoTime(seen.nowMs) }
      // One that is still valid and yet of no use has two clocks that disagree about it.
      return named(seen.nowMs >= seen.notAfterMs ? 'cert_expired' : 'clock_skew', evidence)
    }
    case 'refused':
      return ofRefusal(seen)
    case 'write-failed':
      return named('disk_full', { errno: seen.errno, path: seen.path })
    case 'damaged-credentials':
      return named('credentials_damaged', { part: seen.part, fault: seen.fault, serial: seen.serial })
    case 'skew':
      return named('clock_skew', {
        skew_ms: seen.skewMs,
        tolerance_ms: seen.toleranceMs,
        clock: `${durationWords(Math.abs(seen.skewMs))} ${seen.skewMs > 0 ? 'behind' : 'ahead'}`,
      })
  }
}

const ofServerDates = (seen: Extract<Observed, { kind: 'server-dates' }>): Classified => {
  const evidence = {
    url: seen.url,
    valid_from: seen.validity === null ? null : isoTime(seen.validity.notBeforeMs),
    valid_to: seen.validity === null ? null : isoTime(seen.validity.notAfterMs),
    now: isoTime(seen.nowMs),
  }
  if (!seen.stated) return named('clock_skew', evidence)
  // The clock is accounted for, so the certificate it is.
  return named(seen.for === 'recovery' ? 'recovery_enrollment_blocked' : 'server_tls_untrusted', evidence)
}

const ofRefusal = (seen: Extract<Observed, { kind: 'refused' }>): Classified => {
  const { code, retry, certificate } = seen
  if (retry === 'certificate-expired' && certificate !== null) {
    const evidence = { code, not_after: isoTime(certificate.notAfterMs), now: isoTime(certificate.nowMs) }
    return named(certificate.nowMs >= certificate.notAfterMs ? 'cert_expired' : 'clock_skew', evidence)
  }
  return named(refusalClass(retry, seen.at), { code, at: seen.at })
}

const refusalClass = (retry: RetryClass, at: Purpose): FailureClass => {
  switch (retry) {
    case 'later':
    case 'issuance-stopped':
    case 'unknown-later':
      return 'endpoint_unreachable'
    case 'certificate-expired':
      return 'cert_expired'
    case 'certificate-denied':
    case 'certificate-unknown':
    case 'identity-blocked':
    case 'identity-unproven':
    case 'rejoin':
    case 'revoked':
    case 'second-holder':
    case 'when-free':
      return 'identity_revoked_or_fenced'
    case 'approval':
    case 'drop-bundle':
    case 'new-challenge':
    case 'new-key':
    case 'new-token':
    case 'no-recovery':
    case 'recovery-limit':
      return 'recovery_enrollment_blocked'
    // A listener of our plane answers, and not the one that should answer here.
    case 'no-such-call':
    case 'wrong-address':
      return at === 'recovery' ? 'recovery_enrollment_blocked' : 'endpoint_profile_drift'
    case 'new-request':
    case 'operator':
    case 'unknown':
    case 'unknown-address':
    case 'wrong-request':
      return at === 'recovery' ? 'recovery_enrollment_blocked' : 'endpoint_unreachable'
  }
}

const named = (failureClass: FailureClass, evidence: Evidence): Classified => ({
  class: failureClass,
  evidence: Object.fromEntries(Object.entries(evidence).map(([name, value]) => [name, short(value)])),
  next: nextSteps[failureClass],
})

/** No other root is needed, and no token for a node that can recover. */
const renamedPlane =
  'Nothing, if the agent may recover without an operator: it learns the new name there; else give the plane that name again: --server-name NAME; see the names it has: muster domain names list; a machine that is not enrolled yet needs a new join string: muster token create'

/** What a report may carry. */
const longestValue = 128
const short = <T>(value: T): T | string => (typeof value === 'string' ? value.slice(0, longestValue) : value)

export const nextSteps: Readonly<Record<FailureClass, string>> = {
  endpoint_unreachable:
    'Check the network to that address, and that the plane runs: muster domain show; the agent goes on trying, at once with: muster agent renew --now',
  server_tls_untrusted:
    'Check where the address leads and compare the root with what the plane says: muster ca show; if it has a new root: muster token create --node ID',
  cert_expired:
    'Nothing, if the agent may recover without an operator; else see why not: muster node explain ID; then muster token create --node ID',
  identity_revoked_or_fenced:
    'Find out why: muster node explain ID; then let it back in: muster node release ID, muster node repair-bundle ID or muster node enroll ID',
  endpoint_profile_drift:
    'Give the name its address again, in DNS or /etc/hosts (getent hosts NAME), or give the plane its new name (--server-name); then: muster agent renew --now',
  recovery_enrollment_blocked:
    'See what blocks it: muster node explain ID; then muster node approve ID, muster node repair-bundle ID or muster token create --node ID',
  disk_full: 'Make room on the disk of the state folder, or make it writable: df -h FOLDER; mount -o remount,rw FOLDER',
  clock_skew:
    'Set the clock of this machine: timedatectl set-ntp true; if it is right, look at the plane: muster ca show',
  credentials_damaged:
    'Nothing, if the recovery key is whole: the agent recovers automatically; else bring it a bundle: muster node repair-bundle ID; or a token: muster token create --node ID --replace. Check the disk: dmesg',
}
