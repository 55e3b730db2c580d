// Takes a worker out: its certificates are denied and its keys banned in the commit that makes its row a tombstone. Its pod never comes
// back, whatever tokens it gets; a new pod is a new worker.

import type { KeyBan } from '#domain/core/certificate.ts'
import { boundedText, decided, entry, readOf } from '#domain/core/change.ts'
import type { Attribution, Decided, Row, RowTypes } from '#domain/core/change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { denialOfSlot, workerHolder, workerSlots, type Worker } from './worker.ts'

export type RevokeWorkerFacts = {
  readonly worker: Row<Worker>
  /** Of each of its keys; null: it is not banned. */
  readonly bans: ReadonlyMap<string, Row<KeyBan> | null>
  readonly reason: string
  readonly receiptId: string
  readonly toleranceMs: number
  readonly by: Attribution
  readonly nowMs: number
}

export type WorkerRevoked = Decided & { readonly worker: Worker; readonly receipt: RowTypes['receipt'] }

export const decideRevokeWorker = (facts: RevokeWorkerFacts): WorkerRevoked | Refusal => {
  const { worker, bans, receiptId, toleranceMs, by, nowMs } = facts
  const { id, revoked } = worker.value
  if (revoked !== null) return refuse('WORKER_REVOKED', revoked.reason)
  const reason = boundedText(facts.reason)
  const slots = workerSlots(worker.value)
  const why = `its worker was revoked: ${reason}`
  const next: Worker = { ...worker.value, tokens: [], revoked: { atMs: nowMs, by: by.actor, reason } }
  const receipt: RowTypes['receipt'] = {
    ...{ id: receiptId, kind: 'revoke', node: workerHolder(id), epoch: 0, reason, by: by.actor, decidedAtMs: nowMs },
    certificates: slots.map(({ issuer, serial }) => `${issuer}/${serial}`),
    ...{ replicas: [], peers: null, effectiveAtMs: null, settledAtMs: null, clocks: 'of the plane that decided' },
  }
  const keys = [...new Set(slots.map(({ spki }) => spki))]
  const unbanned = keys.filter((spki) => (bans.get(spki) ?? null) === null)
  const body = { worker: id, worker_issuer: worker.value.issuer, reason, receipt: receiptId }
  return {
    ...decided({
      reads: [
        readOf('worker', id, worker),
        readOf('receipt', receiptId, null),
        ...keys.map((spki) => readOf('key-ban', spki, bans.get(spki) ?? null)),
      ],
      writes: [
        { put: 'worker', value: next },
        { put: 'receipt', value: receipt },
        ...slots.map((slot) => denialOfSlot(slot, { atMs: nowMs, why, reason: 'unspecified', toleranceMs })),
        ...unbanned.map((spki) => ({ put: 'key-ban', value: { spki, why, atMs: nowMs } }) as const),
      ],
      entries: [entry(by, nowMs, 'worker.revoked', {}, body)],
    }),
    worker: next,
    receipt,
  }
}
