// What a recovery writes once its certificate is signed: a new epoch, and the end of the old one, in one change.

import { isoTime } from '#platform/clock.ts'
import { slotOf, type CertificateRecord } from '#domain/core/certificate.ts'
import { readOf, type Change, type Write } from '#domain/core/change.ts'
import { hasCondition, withoutConditions } from '#domain/core/conditions.ts'
import { boundedText, entry } from '#domain/core/decision.ts'
import { holderWords } from '#domain/identity/duplicate.ts'
import { livesBy } from '#domain/ca/issuer.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { Membership, Node, Recovery, Slots } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { registeredRecovery, rotated } from '#domain/core/recovery-credential.ts'
import { keyInUseFacts, type AdmittedRecovery } from './recovery.ts'
import { keysClaimed } from '#domain/identity/key-claim.ts'
import { denialOfEpoch, slotsOf } from '#domain/core/slots.ts'

/**
 * They were about the identity that ended. Suspicions stay for an operator to judge; what the agent reports, and that it
 * could not keep what it was given, it takes back itself.
 */
const ended = [
  'stuck_enrollment',
  'cert_expiring',
  'cert_expired',
  'needs_approval',
  'recovery_enrollment_blocked',
  'not_recoverable',
] as const

/** `nextBearerHash` is used where the node recovers by a bearer token. */
export const recovered = (
  recovery: AdmittedRecovery,
  issued: Omit<CertificateRecord, 'subject' | 'renews'>,
  nextBearerHash: string | null,
): { readonly change: Change; readonly node: Node } => {
  const { facts, before, epoch } = recovery
  const { profile, domain, nowMs } = facts
  const certificate: CertificateRecord = {
    ...issued,
    subject: { kind: 'node', node: before.id, epoch },
    renews: null,
  }
  const slots: Slots = { current: slotOf(certificate), pending: null, retired: null }
  const repaired = facts.credential.by === 'repair'
  const node: Node = {
    ...before,
    epoch,
    counter: before.counter + 1,
    membership: membershipAfter(before.membership, slots, nowMs),
    conditions: withoutConditions(before.conditions, ended),
    approvals: [],
    recovery: recoveryAfter(recovery, nextBearerHash),
    repair: repaired && before.repair !== null ? usedRepair(before.repair, issued.spki, epoch, nowMs) : null,
    rehearsal: null,
  }
  const denial = denialOfEpoch(before, {
    toleranceMs: domain.value.clockToleranceMs,
    atMs: nowMs,
    why: 'superseded by a recovery',
    reason: 'superseded',
  })
  const keys = keysClaimed({ ...keyInUseFacts(facts, issued.spki), recovery: node.recovery, nowMs })
  const writes: Write[] = [
    { put: 'node', value: node },
    { put: 'certificate', value: certificate },
    ...(denial === null ? [] : [{ put: 'denial', value: denial } as const]),
    ...keys.writes,
  ]
  const reads = [
    readOf('node', node.id, facts.node),
    readOf('profile', profile.value.name, profile),
    readOf('domain', 'domain', domain),
    readOf('key-ban', issued.spki, null),
    // A revocation of another node with the same recovery key bans it, and does not write this node.
    ...(facts.credential.by === 'key' ? [readOf('key-ban', facts.credential.spki, null)] : []),
    ...keys.reads,
  ]
  return { node, change: { reads, writes, entries: entriesOf(recovery, certificate, node) } }
}

/** A repaired node stays in quarantine; its certificate opens a channel for evidence. */
const membershipAfter = (before: Membership, slots: Slots, nowMs: number): Membership =>
  before.kind === 'quarantined' ? { ...before, slots } : { kind: 'enrolled', sinceMs: nowMs, slots }

const usedRepair = (
  repair: NonNullable<Node['repair']>,
  spki: string,
  epoch: number,
  atMs: number,
): Node['repair'] => ({
  ...repair,
  usedBy: { spki, epoch, atMs },
  evidence: null,
})

const recoveryAfter = ({ facts, before }: AdmittedRecovery, nextBearerHash: string | null): Recovery | null => {
  const { credential, register, profile, by, nowMs } = facts
  const anew = credential.by === 'repair' ? registeredRecovery(register, profile.value, nextBearerHash, nowMs) : null
  if (anew !== null) return { ...anew, episode: by.correlation }
  const { recovery } = before
  // What two holders had is not left to either of them.
  const shared = credential.by === 'repair' && hasCondition(before, 'duplicate_identity')
  if (recovery === null || shared) return null
  // An operator's repair is no recovery of its own, and whoever was thrown out with its authority has done nothing.
  const isFree = credential.by === 'repair' || livesBy(before, facts.withdrawn)
  return {
    credential: rotated(heldOf(recovery.credential, credential), nextBearerHash),
    recoveredAtMs: isFree ? recovery.recoveredAtMs : historyWith(recovery, profile.value, nowMs),
    denied: null,
    episode: by.correlation,
  }
}

/** Of two tokens that are good the holder has the one it presented: the other goes. */
const heldOf = (
  registered: Recovery['credential'],
  presented: AdmittedRecovery['facts']['credential'],
): Recovery['credential'] =>
  registered.kind === 'bearer' && presented.by === 'bearer'
    ? { ...registered, hash: presented.hash, former: null }
    : registered

const historyWith = (recovery: Recovery, profile: Profile, nowMs: number): readonly number[] => {
  const { windowMs, limit } = profile.recovery
  return [...recovery.recoveredAtMs.filter((atMs) => atMs > nowMs - windowMs), nowMs].slice(-Math.max(1, limit))
}

const entriesOf = (recovery: AdmittedRecovery, certificate: CertificateRecord, node: Node): Change['entries'] => {
  const { facts, before, epoch } = recovery
  const { by, nowMs, failure, credential, claimant, profile } = facts
  const { issuer, serial } = certificate
  const failed = {
    failure_class: failure.class,
    failure_code: boundedText(failure.code, 64),
    failed_since: isoTime(failure.sinceMs),
    cert_not_after: failure.certNotAfterMs === null ? null : isoTime(failure.certNotAfterMs),
  }
  const requested = entry(
    by,
    nowMs,
    'node.recovery_requested',
    { node: before.id, epoch: before.epoch },
    { credential: credential.by, counter: facts.counter === null ? null : facts.counter.counter, ...failed },
  )
  const supersedes: EntryDraft[] =
    slotsOf(before) === null
      ? []
      : [
          entry(
            by,
            nowMs,
            'node.superseded',
            { node: before.id, epoch: before.epoch },
            {
              was: before.membership.kind,
              superseded: before.membership.kind === 'active' ? 'an active identity' : 'a lapsed identity',
              by_epoch: epoch,
            },
          ),
        ]
  const done = entry(
    by,
    nowMs,
    credential.by === 'repair' ? 'node.repaired' : 'node.recovered',
    { node: before.id, epoch, issuer, serial },
    {
      security_event: true,
      mode: profile.value.recovery.mode,
      credential: credential.by,
      repair_bundle: credential.by === 'repair' && node.repair !== null ? node.repair.id : null,
      withdrawn_issuer: livesBy(before, facts.withdrawn) ? (slotsOf(before)?.current.issuer ?? null) : null,
      registered: node.recovery === null ? null : node.recovery.credential.kind,
      approved_by: before.approvals.map(({ by: person }) => person),
      ...failed,
      claimant: holderWords(claimant),
      mtls_cert_fingerprint: `SHA256:${certificate.sha256}`,
      key: `SHA256:${certificate.spki}`,
      order: certificate.order,
      not_after: isoTime(certificate.notAfterMs),
      counter: node.counter,
    },
  )
  return [requested, ...supersedes, done]
}
