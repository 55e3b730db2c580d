// Takes a worker out: the commit denies, and the receipt says which replicas know.

import type { KeyBan } from '#domain/core/certificate.ts'
import type { Attribution, Row, RowTypes } from '#domain/core/change.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideRevokeWorker } from '#domain/workers/revoke-worker.ts'
import { workerSlots, type Worker } from '#domain/workers/worker.ts'
import { sortableId } from '#platform/random.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'

export type RevokeWorkerParts = {
  readonly receipts: { collect(receipt: RowTypes['receipt']): Promise<RowTypes['receipt']> }
}

export type RevokedWorker = {
  readonly kind: 'revoked'
  readonly worker: Worker
  readonly receipt: RowTypes['receipt']
}

export const revokeWorker = async (
  { store, feed, clock, random }: FlowCore,
  { receipts }: RevokeWorkerParts,
  id: string,
  { reason, by }: { readonly reason: string; readonly by: Attribution },
): Promise<RevokedWorker | Refusal> => {
  const done = await commitDecision({ store, feed }, async () => {
    const worker = await store.get('worker', id)
    if (worker === null) return refuse('WORKER_NOT_FOUND', id)
    const bans = new Map<string, Row<KeyBan> | null>()
    for (const { spki } of workerSlots(worker.value)) bans.set(spki, await store.get('key-ban', spki))
    const { clockToleranceMs: toleranceMs } = (await domainSettingsRow(store)).value
    const nowMs = clock.nowMs()
    const receiptId = sortableId(nowMs, random)
    return decideRevokeWorker({ worker, bans, reason, receiptId, toleranceMs, by, nowMs })
  })
  if (isRefusal(done)) return done
  return { kind: 'revoked', worker: done.worker, receipt: await receipts.collect(done.receipt) }
}
