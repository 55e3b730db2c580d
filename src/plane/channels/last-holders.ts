// Which process last had a channel with the current certificate of its node. A request of that very process that comes
// late, on a connection of before its last rotation, is not somebody else's.

import type { Node, NodeId } from '#domain/node.ts'
import { slotNameOf, slotsOf } from '#domain/slots.ts'
import type { Store } from '#plane/store/store.ts'
import type { Session } from './session.ts'

export type LastHolders = {
  opened(session: Session, node: Node): void
  /** True when this process is known to have moved on to the node's current certificate. */
  isHolder(node: Node, instance: string): Promise<boolean>
}

export const openLastHolders = (store: Pick<Store, 'observation'>): LastHolders => {
  // One for every node that has had a channel here.
  const instances = new Map<NodeId, string>()
  return {
    opened({ principal, evidence }, node) {
      const slots = slotsOf(node)
      const { issuer, serial } = principal.proof
      // Whoever opens one with a certificate that has been replaced may be the copy.
      if (slots === null || slotNameOf(slots, issuer, serial) !== 'current') return
      if (evidence === null) instances.delete(node.id)
      else instances.set(node.id, evidence.instance)
    },
    async isHolder(node, instance) {
      const known = instances.get(node.id)
      if (known !== undefined) return known === instance
      // After a restart of the plane: what its agent said of itself last.
      const { report } = await store.observation(node.id)
      const current = slotsOf(node)?.current.serial
      return report !== null && report.instance === instance && report.certificate.serial === current
    },
  }
}
