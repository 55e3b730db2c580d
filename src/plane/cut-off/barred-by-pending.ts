// What an order keeps out at this replica from the moment it was given, while the store cannot commit it.

import type { Change } from '#domain/core/change.ts'
import { cutOffWords, forbids } from '#domain/core/cut-off.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { PendingCutOff } from './pending-cut-offs.ts'

/** Null: nothing pending keeps this node out. */
export const barredByPending = (pending: ReadonlyMap<string, PendingCutOff>, node: NodeId): Refusal | null => {
  if (pending.has(`revoke/${node}`)) return refuse('CLIENT_CERT_DENIED')
  return pending.has(`quarantine/${node}`) ? refuse('NODE_QUARANTINED') : null
}

/** Null: nothing pending keeps this worker out. */
export const workerBarredByPending = (pending: ReadonlyMap<string, PendingCutOff>, worker: string): Refusal | null =>
  pending.has(`revoke-worker/${worker}`) ? refuse('WORKER_REVOKED') : null

/** As given, but for changes that a pending order forbids. */
export const forbiddenByPending = (store: Store, pending: () => Iterable<PendingCutOff>): Store => ({
  ...store,
  commit(change: Change, fencingToken) {
    for (const { order } of pending())
      if (forbids(order, change))
        return Promise.reject(
          new StoreFault('nothing was committed', `${cutOffWords(order)} is in force here and not committed yet`),
        )
    return store.commit(change, fencingToken)
  },
})
