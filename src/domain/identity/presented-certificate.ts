// Does a presented certificate authenticate its node now? Decided on every request, before any handler.

import { isoTime } from '#platform/clock.ts'
import { type CertificateRow, isFromFuture, slotNameOf, slotsOf } from '#domain/core/certificate.ts'
import type { Node } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type PresentedCertificate = {
  /** Null: no row, or the row is of another certificate with the same issuer and serial. */
  readonly row: CertificateRow | null
  /** The node its row names; null when the registry has forgotten it. */
  readonly node: Node | null
  /** The deny-list names the certificate or its epoch. */
  readonly denied: boolean
  /** Its key was banned, with this node or another. */
  readonly keyBanned: boolean
  /** The deny-list names the authority that issued it. */
  readonly issuerWithdrawn: boolean
  readonly source: string
  /** How far the clock that dated it may have been from ours. */
  readonly toleranceMs: number
  readonly nowMs: number
}

export type Unaccepted = Refusal & {
  /** It betrays a second holder of an identity: who was impersonated. */
  readonly secondHolderOf?: { readonly node: Node; readonly serial: string }
  /** It was issued while a clock was ahead. Its holder has done nothing wrong, and recovers. */
  readonly fromFuture?: true
}

export const keyBanned = (): Refusal =>
  refuse('CLIENT_CERT_DENIED', 'its key was banned with another node that had the same one')

/** The node has been registered anew since, or is in a later epoch: the ban of its key says nothing about other nodes. */
const isOfFormer = ({ subject }: CertificateRow, { epoch, membership }: Node): boolean =>
  membership.kind === 'registered' || (subject.kind === 'node' && subject.epoch !== epoch)

const former = (): Refusal =>
  refuse('CLIENT_CERT_DENIED', 'its node was revoked, and what this machine had of it ended with that')

export const judgeCertificate = (facts: PresentedCertificate): NodePrincipal | Unaccepted => {
  const { row, node, nowMs } = facts
  if (row === null || row.subject.kind !== 'node' || node === null) return refuse('CLIENT_CERT_UNKNOWN')
  if (nowMs >= row.notAfterMs) return refuse('CLIENT_CERT_EXPIRED')
  if (node.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (node.membership.kind === 'quarantined' && node.membership.slots === null) return refuse('NODE_QUARANTINED')
  if (facts.keyBanned) return isOfFormer(row, node) ? former() : keyBanned()
  // Its holder has done nothing wrong, and comes back at once.
  if (facts.issuerWithdrawn) return refuse('ISSUER_WITHDRAWN')
  if (facts.denied || row.subject.epoch !== node.epoch) return refuse('CLIENT_CERT_DENIED')
  if (isFromFuture(row.issuedAtMs, nowMs, facts.toleranceMs)) {
    // With a code that agents of every release know: it sends them into recovery.
    const begins = `it was issued by a clock that was ahead, and begins ${isoTime(row.issuedAtMs)}`
    return { ...refuse('CLIENT_CERT_DENIED', begins), fromFuture: true }
  }

  const slots = slotsOf(node)
  if (slots === null) return refuse('CLIENT_CERT_DENIED')
  const name = slotNameOf(slots, row.issuer, row.serial)
  const drained = name === 'retired' && (slots.retired === null || nowMs >= slots.retired.untilMs)
  // A certificate of the current epoch that was replaced long ago: its successor is in use, so this is a second holder.
  if (name === null || drained) {
    return { ...refuse('SERIAL_MISMATCH'), secondHolderOf: { node, serial: row.serial } }
  }
  return {
    kind: 'node',
    id: node.id,
    epoch: node.epoch,
    credential: { by: 'certificate', issuer: row.issuer, serial: row.serial, spki: row.spki },
    notAfterMs: row.notAfterMs,
    evidenceOnly: node.membership.kind === 'quarantined',
    ...(name === 'retired' ? { draining: true } : {}),
    source: facts.source,
  }
}
