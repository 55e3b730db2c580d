// Who an order is for, as the store has it now: a node, a program of one, or a worker.

import { ordererOf, type Orderer } from '#domain/issuers/order-changes.ts'
import type { Order } from '#domain/issuers/order.ts'
import { leavesOf, programKey } from '#domain/programs/program.ts'
import { workerSlots } from '#domain/workers/worker.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** Null: it is not there, or not yet. */
export const readOrderer = async (
  store: Pick<Store, 'get'>,
  { subject }: Pick<Order, 'subject'>,
): Promise<Orderer | null> => {
  switch (subject.kind) {
    case 'node':
    case 'program': {
      const node = await store.get('node', subject.node)
      if (node === null) return null
      const ofNode = ordererOf(node.value)
      if (subject.kind === 'node') return ofNode
      const program = await store.get('program', programKey(subject))
      const isEarlier = node.value.epoch > subject.epoch
      return {
        ended: ofNode.ended ?? (isEarlier ? 'its node has another epoch' : null),
        slots: program === null ? [] : leavesOf(program.value),
      }
    }
    case 'worker': {
      const worker = await store.get('worker', subject.worker)
      if (worker === null) return null
      return {
        ended: worker.value.revoked === null ? null : 'its worker was revoked',
        slots: workerSlots(worker.value),
      }
    }
    case 'server':
      return null
  }
}
