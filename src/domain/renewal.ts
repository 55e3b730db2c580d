// A new key and certificate within an epoch (rulings 4 and 8). One successor a certificate: the same request again gets
// the same answer, another key means that somebody else holds this identity too.

import { isoTime } from '#platform/clock.ts'
import { slotOf, type CertificateRecord, type KeyBan } from './certificate.ts'
import { readOf, type Change, type Row } from './change.ts'
import { entry, type Attribution } from './decision.ts'
import type { DomainSettings } from './domain-settings.ts'
import { orderNodeCertificate, type KeyInRequest } from './node-certificate.ts'
import type { Node, Slot, Slots } from './node.ts'
import type { SigningOrder } from './order.ts'
import type { NodePrincipal } from './principal.ts'
import type { Profile } from './profile.ts'
import { refuse, type Refusal } from './refusal.ts'
import { slotNameOf } from './slots.ts'

export type RenewFacts = {
  readonly node: Row<Node>
  readonly principal: NodePrincipal
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
  readonly key: KeyInRequest | { readonly kind: 'malformed'; readonly why: string }
  readonly keyBan: Row<KeyBan> | null
  readonly orderId: string
  readonly by: Attribution
  readonly nowMs: number
}

export type RenewVerdict = Refusal | { readonly kind: 'repeat'; readonly slot: Slot } | Renewal

export type Renewal = {
  readonly kind: 'admitted'
  readonly facts: RenewFacts
  readonly slots: Slots
  readonly order: SigningOrder
}

export const decideRenew = (facts: RenewFacts): RenewVerdict => {
  const { node, principal, key, profile, nowMs } = facts
  if (key.kind === 'malformed') return refuse('CSR_INVALID', key.why)
  const { membership } = node.value
  // The caller's first use has been committed before: whoever may renew is active by now.
  if (membership.kind !== 'active') return refuse('NODE_STATE_CONFLICT', `the node is ${membership.kind}`)
  if (node.value.epoch !== principal.epoch) return refuse('CLIENT_CERT_DENIED')

  const { slots } = membership
  const asking = slotNameOf(slots, principal.proof.issuer, principal.proof.serial)
  // The same request again, on a connection that has not heard of its answer having been used already.
  if (asking === 'retired' && slots.current.spki === key.spkiHash) return { kind: 'repeat', slot: slots.current }
  if (asking !== 'current') return refuse('SERIAL_MISMATCH')
  if (slots.pending !== null && slots.pending.notAfterMs > nowMs) {
    return slots.pending.spki === key.spkiHash ? { kind: 'repeat', slot: slots.pending } : refuse('LINEAGE_CONFLICT')
  }
  if (slots.current.spki === key.spkiHash) return refuse('CSR_INVALID', 'a renewal needs a new key')
  if (facts.keyBan !== null) return refuse('KEY_BLOCKED')
  if (!profile.value.certificate.keyTypes.includes(key.keyType)) {
    return refuse(
      'CSR_INVALID',
      `profile ${profile.value.name} allows keys of type ${profile.value.certificate.keyTypes.join(', ')}`,
    )
  }
  const order = orderNodeCertificate({
    id: facts.orderId,
    node: node.value.id,
    epoch: node.value.epoch,
    profile: profile.value,
    domain: facts.domain.value,
    key,
    nowMs,
  })
  return order.kind === 'refused' ? order : { kind: 'admitted', facts, slots, order: order.order }
}

/** The successor waits in the pending slot until it is used. */
export const renewed = (renewal: Renewal, issued: Omit<CertificateRecord, 'subject' | 'renews'>): Change => {
  const { facts, slots } = renewal
  const { node, principal, profile, domain, by, nowMs } = facts
  const certificate: CertificateRecord = {
    ...issued,
    subject: { kind: 'node', node: node.value.id, epoch: node.value.epoch },
    renews: slots.current.serial,
  }
  const pending = slotOf(certificate)
  const membership = { ...node.value.membership, kind: 'active', slots: { ...slots, pending } } as const
  return {
    reads: [
      readOf('node', node.value.id, node),
      readOf('profile', profile.value.name, profile),
      readOf('domain', 'domain', domain),
      readOf('key-ban', issued.spki, null),
    ],
    writes: [
      { put: 'node', value: { ...node.value, membership } },
      { put: 'certificate', value: certificate },
    ],
    entries: [
      entry(
        by,
        nowMs,
        'node.renewed',
        { node: node.value.id, epoch: principal.epoch, issuer: issued.issuer, serial: issued.serial },
        {
          renews: slots.current.serial,
          mtls_cert_fingerprint: `SHA256:${issued.sha256}`,
          key: `SHA256:${issued.spki}`,
          order: issued.order,
          not_after: isoTime(issued.notAfterMs),
        },
      ),
    ],
  }
}
