// A worker: a program that queues tasks, such as a provisioner in a cluster. It is a principal of its own and never a node (ruling 26). Its
// instance is the pod that its issuer names.

import { isFromFuture, type CertificateRow, type Denial, type DenialReason } from '#domain/core/certificate.ts'
import type { MayBeForged } from '#domain/core/change.ts'
import type { Slot } from '#domain/core/node.ts'
import type { WorkerPrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { WorkerIssuer } from './worker-issuer.ts'

export type Worker = MayBeForged & {
  /** workerIdOf(issuer, instance) */
  readonly id: string
  /** The name of its worker issuer. */
  readonly issuer: string
  readonly instance: string
  /** As its issuer had them when it enrolled. */
  readonly iss: string
  readonly sub: string
  /** When that issuer was added: one that is added again under the name of a removed one is another one. */
  readonly issuerSinceMs: number
  readonly enrolledAtMs: number
  readonly current: Slot
  /** The certificate before the current one: it stays good until its end, because the answer that replaces it may be lost. */
  readonly former: Slot | null
  /** The tokens that still hold, each with the only key that it may be brought with: the first one. */
  readonly tokens: readonly SeenToken[]
  readonly revoked: { readonly atMs: number; readonly by: string; readonly reason: string } | null
}

export type SeenToken = { readonly hash: string; readonly spki: string; readonly untilMs: number }

/** How a worker is named where nodes are named, too. No id of a node has a colon. */
export const workerHolder = (id: string): string => `worker:${id}`

export const workerSlots = ({ current, former }: Worker): readonly Slot[] =>
  former === null ? [current] : [current, former]

/** When its row can go; null: never, because it is a tombstone. A pod keeps its uid as long as it lives. */
export const workerEndsMs = (worker: Worker): number | null =>
  worker.revoked === null ? Math.max(...workerSlots(worker).map(({ notAfterMs }) => notAfterMs)) : null

export const isOfIssuer = ({ iss, sub, issuerSinceMs }: Worker, issuer: WorkerIssuer | null): issuer is WorkerIssuer =>
  issuer !== null &&
  issuer.forged !== true &&
  issuer.removedAtMs === null &&
  issuer.createdAtMs === issuerSinceMs &&
  issuer.iss === iss &&
  issuer.sub === sub

export type PresentedWorkerCertificate = {
  readonly row: CertificateRow
  /** Null: it is not on record any more. Its row has a MAC, and that of its certificate has none: both have to name the same one. */
  readonly worker: Worker | null
  readonly issuer: WorkerIssuer | null
  /** An authority of workers has signed it, or an outside issuer, and no other authority of the domain. */
  readonly byWorkersAuthority: boolean
  readonly denied: boolean
  readonly keyBanned: boolean
  readonly issuerWithdrawn: boolean
  readonly source: string
  readonly toleranceMs: number
  readonly nowMs: number
}

/** Does a presented certificate authenticate its worker now? Decided on every request. */
export const judgeWorkerCertificate = (facts: PresentedWorkerCertificate): WorkerPrincipal | Refusal => {
  const { row, worker, issuer, nowMs } = facts
  if (worker === null || worker.forged || !facts.byWorkersAuthority) return refuse('CLIENT_CERT_UNKNOWN')
  if (worker.revoked !== null) return refuse('WORKER_REVOKED')
  if (nowMs >= row.notAfterMs) return refuse('CLIENT_CERT_EXPIRED')
  if (facts.keyBanned || facts.denied) return refuse('CLIENT_CERT_DENIED')
  if (facts.issuerWithdrawn) return refuse('CLIENT_CERT_DENIED', 'the authority that issued it has been withdrawn')
  if (!isOfIssuer(worker, issuer))
    return refuse(
      'CLIENT_CERT_DENIED',
      'the issuer of this worker was removed or replaced, or is now for another subject',
    )
  if (isFromFuture(row.issuedAtMs, nowMs, facts.toleranceMs))
    return refuse('CLIENT_CERT_DENIED', 'it was issued by a clock that was ahead')
  if (
    !workerSlots(worker).some(
      (slot) => slot.issuer === row.issuer && slot.serial === row.serial && slot.sha256 === row.sha256,
    )
  )
    return refuse('SERIAL_MISMATCH')
  return {
    kind: 'worker',
    id: worker.id,
    issuer: worker.issuer,
    credential: { by: 'certificate', issuer: row.issuer, serial: row.serial, spki: row.spki },
    notAfterMs: row.notAfterMs,
    source: facts.source,
  }
}

/** Cuts off one certificate of a worker, for as long as it could be valid. */
export const denialOfSlot = (
  { issuer, serial, notAfterMs }: Slot,
  story: { readonly atMs: number; readonly why: string; readonly reason: DenialReason; readonly toleranceMs: number },
): { readonly put: 'denial'; readonly value: Denial } => {
  const { toleranceMs, ...told } = story
  return { put: 'denial', value: { kind: 'certificate', issuer, serial, untilMs: notAfterMs + toleranceMs, ...told } }
}
