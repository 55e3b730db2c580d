// What a renewal writes once its certificate is signed.

import { isoTime } from '#platform/clock.ts'
import { slotOf, type CertificateRecord } from '#domain/core/certificate.ts'
import { readOf, type Change, type Write } from '#domain/core/change.ts'
import { hasCondition, withCondition } from '#domain/core/conditions.ts'
import { entry } from '#domain/core/decision.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { Node, Recovery, Slot } from '#domain/core/node.ts'
import { registeredRecovery, rotated } from '#domain/core/recovery-credential.ts'
import { keyInUseFacts, type Renewal } from './renewal.ts'
import { keysClaimed } from './key-claim.ts'

/** The successor waits in the pending slot until it is used. `nextBearerHash` is used where the node recovers by a token. */
export const renewed = (
  renewal: Renewal,
  issued: Omit<CertificateRecord, 'subject' | 'renews'>,
  nextBearerHash: string | null,
): { readonly change: Change; readonly node: Node } => {
  const { facts, slots, suspicion } = renewal
  const { node, principal, profile, domain, by, nowMs } = facts
  const { value } = node
  const certificate: CertificateRecord = {
    ...issued,
    subject: { kind: 'node', node: value.id, epoch: value.epoch },
    renews: slots.current.serial,
  }
  const successor: Node = {
    ...value,
    membership: { ...value.membership, kind: 'active', slots: { ...slots, pending: slotOf(certificate) } },
    counter: value.counter + 1,
    recovery: recoveryAfter(facts, nextBearerHash),
    conditions:
      suspicion === null
        ? value.conditions
        : withCondition(value.conditions, { name: 'duplicate_identity', sinceMs: nowMs, ...suspicion }),
  }
  const keys = keysClaimed({ ...keyInUseFacts(facts, issued.spki), recovery: successor.recovery, nowMs })
  const about = { node: value.id, epoch: principal.epoch }
  const body = {
    renews: slots.current.serial,
    replaces: slots.pending === null ? null : slots.pending.serial,
    mtls_cert_fingerprint: `SHA256:${issued.sha256}`,
    key: `SHA256:${issued.spki}`,
    order: issued.order,
    not_after: isoTime(issued.notAfterMs),
    counter: successor.counter,
    registered: value.recovery === null && successor.recovery !== null ? successor.recovery.credential.kind : null,
  }
  const writes: Write[] = [
    { put: 'node', value: successor },
    { put: 'certificate', value: certificate },
    ...(slots.pending === null ? [] : [denialOf(slots.pending, domain.value.clockToleranceMs, nowMs)]),
    ...keys.writes,
  ]
  return {
    node: successor,
    change: {
      reads: [
        readOf('node', value.id, node),
        readOf('profile', profile.value.name, profile),
        readOf('domain', 'domain', domain),
        readOf('key-ban', issued.spki, null),
        // A revocation of another node with the same key bans it, and does not write this node.
        readOf('key-ban', slots.current.spki, null),
        ...keys.reads,
      ],
      writes,
      entries: [
        ...suspected(renewal),
        entry(by, nowMs, 'node.renewed', { ...about, issuer: issued.issuer, serial: issued.serial }, body),
      ],
    },
  }
}

/**
 * A node that has none, because its agent or its plane knew none before or an operator's decision took it away, registers
 * one here. Not while two may hold the identity: it would be whose turn it is.
 */
const recoveryAfter = (facts: Renewal['facts'], nextBearerHash: string | null): Recovery | null => {
  const { node, profile, register, nowMs } = facts
  const { recovery } = node.value
  if (recovery !== null) return { ...recovery, credential: rotated(recovery.credential, nextBearerHash) }
  if (hasCondition(node.value, 'duplicate_identity')) return null
  return registeredRecovery(register, profile.value, nextBearerHash, nowMs)
}

/** The successor nobody has used is not one any more. */
const denialOf = ({ issuer, serial, notAfterMs }: Slot, toleranceMs: number, atMs: number): Write => ({
  put: 'denial',
  value: {
    kind: 'certificate',
    issuer,
    serial,
    atMs,
    untilMs: notAfterMs + toleranceMs,
    why: 'replaced before its first use',
    reason: 'superseded',
  },
})

const suspected = ({ facts, suspicion }: Renewal): readonly EntryDraft[] => {
  const { node, by, nowMs } = facts
  if (suspicion === null || hasCondition(node.value, 'duplicate_identity')) return []
  const { reason, evidence } = suspicion
  const body = { condition: 'duplicate_identity', reason, ...evidence }
  return [entry(by, nowMs, 'node.second_holder', { node: node.value.id, epoch: node.value.epoch }, body)]
}
