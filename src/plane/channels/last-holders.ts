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
  const holders = new Map<NodeId, { readonly instance: string; readonly serial: string }>()
  return {
    opened({ principal, evidence }, node) {
      const slots = slotsOf(node)
      const { issuer, serial } = principal.proof
      // Whoever opens one with a certificate that has been replaced may be the copy.
      if (slots === null || slotNameOf(slots, issuer, serial) !== 'current') return
      if (evidence === null) holders.delete(node.id)
      else holders.set(node.id, { instance: evidence.instance, serial })
    },
    async isHolder(node, instance) {
      const known = holders.get(node.id)
      const current = slotsOf(node)?.current.serial
      // Of the certificate before it says nothing: somebody else may have moved on.
      if (known !== undefined) return known.instance === instance && known.serial === current
      // After a restart of the plane: what its agent said of itself last.
      const { report } = await store.observation(node.id)
      return report !== null && report.instance === instance && report.certificate.serial === current
    },
  }
}
