// What an admission writes once its certificate is signed.

import { isoTime } from '#platform/clock.ts'
import { slotOf, type CertificateRecord } from '#domain/core/certificate.ts'
import { readOf, type Change, type Write } from '#domain/core/change.ts'
import { boundedText, entry } from '#domain/core/decision.ts'
import { keyInUseFacts, type Admission } from './enrollment.ts'
import { keysClaimed } from '#domain/identity/key-claim.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { registeredRecovery } from '#domain/core/recovery-credential.ts'
import { registeredEntry } from './registration.ts'
import { denialOfEpoch } from '#domain/core/slots.ts'
import { underlayText, wireguardJoined } from '#domain/network/wireguard-part.ts'
import type { Credential } from './credential.ts'
import { isSuspicion } from '#domain/identity/settle.ts'
import { bothHolders, isByHardwareAlone } from './supersession.ts'
import { assurances, type Assurance, type Node } from '#domain/core/node.ts'

/** `nextBearerHash` is used where the node registers a bearer token. */
export const enrolled = (
  admission: Admission,
  issued: Omit<CertificateRecord, 'subject' | 'renews'>,
  nextBearerHash: string | null,
): { readonly change: Change; readonly node: Node } => {
  const { facts, before, epoch } = admission
  const { credential, nowMs, domain } = facts
  const certificate: CertificateRecord = {
    ...issued,
    subject: { kind: 'node', node: before.id, epoch },
    renews: null,
  }
  const { wireguard, besides } = wireguardJoined(
    facts.profile.value,
    before.id,
    facts.wireguard,
    facts.wireguardHeld,
    nowMs,
  )
  const node: Node = {
    ...before,
    epoch,
    wireguard,
    membership: {
      kind: 'enrolled',
      sinceMs: nowMs,
      slots: { current: slotOf(certificate), pending: null, retired: null },
    },
    facts: facts.reported.facts ?? before.facts,
    assurance: strongest(facts.profile.value.join.allOf),
    conditions: suspicionsKept(before, credential),
    approvals: [],
    counter: before.counter + 1,
    recovery: registeredRecovery(facts.recovery, facts.profile.value, nextBearerHash, nowMs),
    repair: null,
    rehearsal: null,
  }
  const superseded = denialOfEpoch(before, {
    toleranceMs: domain.value.clockToleranceMs,
    atMs: nowMs,
    why: 'superseded by a new enrollment',
    reason: 'superseded',
  })

  const keys = keysClaimed({ ...keyInUseFacts(facts, issued.spki), recovery: node.recovery, nowMs })

  const writes: Write[] = [
    { put: 'node', value: node },
    { put: 'certificate', value: certificate },
    ...(superseded === null ? [] : [{ put: 'denial', value: superseded } as const]),
    ...(besides.writes ?? []),
    ...keys.writes,
  ]
  if (credential.method === 'token') {
    const state = { kind: 'used', spki: issued.spki, node: node.id, atMs: nowMs } as const
    writes.push({ put: 'token', value: { ...credential.token.value, state } })
  }

  const reads = [
    readOf('node', node.id, facts.node),
    readOf('profile', facts.profile.value.name, facts.profile),
    readOf('domain', 'domain', domain),
    readOf('key-ban', issued.spki, null),
    ...(besides.reads ?? []),
    ...keys.reads,
    ...(credential.method === 'token' ? [readOf('token', credential.token.value.hash, credential.token)] : []),
  ]
  return { node, change: { reads, writes, entries: entriesOf(admission, certificate, node) } }
}

/**
 * A new epoch starts clean but for suspicions: a second holder that gets in must not end the alert about itself. A token
 * that an operator made since is that operator's decision.
 */
const suspicionsKept = ({ conditions }: Node, credential: Credential): Node['conditions'] =>
  conditions.filter(
    (condition) =>
      isSuspicion(condition) &&
      (credential.method !== 'token' || credential.token.value.createdAtMs <= condition.sinceMs),
  )

const entriesOf = (admission: Admission, certificate: CertificateRecord, node: Node): Change['entries'] => {
  const { facts, before, epoch } = admission
  const { credential, by, nowMs, reported } = facts
  const token = credential.method === 'token' ? credential.token.value.id : null
  const host = entry(
    by,
    nowMs,
    'host.enrolled',
    { node: before.id, epoch, token, issuer: certificate.issuer, serial: certificate.serial },
    {
      host_id: before.id,
      token_id: token,
      enrolled_by: 'system:enrollment-service',
      underlay_endpoint: node.wireguard === null ? null : underlayText(node.wireguard.endpoint),
      wireguard_pubkey_fingerprint:
        node.wireguard === null || facts.wireguard === null ? null : `SHA256:${facts.wireguard.brought.fingerprint}`,
      mtls_cert_fingerprint: `SHA256:${certificate.sha256}`,
      timestamp: isoTime(nowMs),
      method: credential.method,
      key: `SHA256:${certificate.spki}`,
      order: certificate.order,
      not_after: isoTime(certificate.notAfterMs),
      probe: typeof facts.probe === 'string' ? facts.probe : 'silent',
      probe_silent_ms: typeof facts.probe === 'string' ? null : Math.round(facts.probe.silentMs),
      recovery: node.recovery === null ? null : node.recovery.credential.kind,
      counter: node.counter,
      overlay_address: node.wireguard === null ? null : node.wireguard.address,
      reported_macs: reported.hardware.macs,
      reported_bmc_serial: reported.hardware.bmcSerial === null ? null : boundedText(reported.hardware.bmcSerial, 128),
    },
  )
  const others: EntryDraft[] = []
  if (facts.node === null) others.push(registeredEntry(before, by, nowMs))
  if (admission.supersedes !== 'nothing') {
    const body = {
      was: before.membership.kind,
      superseded: admission.supersedes,
      by_epoch: epoch,
      ...(isByHardwareAlone(admission) ? bothHolders(admission) : {}),
    }
    others.push(entry(by, nowMs, 'node.superseded', { node: before.id, epoch: before.epoch, token }, body))
  }
  return [...others, host]
}

const strongest = (methods: readonly string[]): Assurance => {
  const order: readonly string[] = assurances
  const best = Math.max(...methods.map((method) => order.indexOf(method === 'tpm' ? 'ek-pinned' : method)))
  return assurances[best] ?? 'none'
}
