// Which process last had a channel with the current certificate of its node. A request of that very process that comes
// late, on a connection of before its last rotation, is not somebody else's.

import type { Node, NodeId } from '#domain/core/node.ts'
import { slotNameOf, slotsOf } from '#domain/core/slots.ts'
import type { LastHolder } from './live-holder.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Holding } from '#plane/sessions/holding.ts'
import { answerReplicas, askReplica, lastHolderQuestion, lookUpWithinMs } from '#plane/cluster/replica-questions.ts'
import type { Session } from '#plane/sessions/session.ts'

export type LastHolders = LastHolder & { opened(session: Session, node: Node): void }

export type LastHoldersDeps = {
  readonly store: Pick<Store, 'observation'>
  readonly holding: Pick<Holding, 'elsewhere'>
  readonly replicas: Pick<Replicas, 'ask' | 'onQuestion'>
}

export const openLastHolders = ({ store, holding, replicas }: LastHoldersDeps): LastHolders => {
  // One for every node that has had a channel here.
  const holders = new Map<NodeId, { readonly instance: string; readonly serial: string }>()

  /** Null: what is known here is of another certificate, if anything is. Somebody else may have moved on, or moved. */
  const knownHere = (node: NodeId, instance: string, serial: string): boolean | null => {
    const known = holders.get(node)
    return known === undefined || known.serial !== serial ? null : known.instance === instance
  }
  answerReplicas(replicas, lastHolderQuestion, async ({ node, instance, serial }) => knownHere(node, instance, serial))

  const knownElsewhere = async (
    node: NodeId,
    instance: string,
    serial: string,
  ): Promise<boolean | null | 'unknown'> => {
    const holder = await holding.elsewhere(node)
    if (holder === null) return null
    const asks = { node, instance, serial }
    const asked = await askReplica(replicas, holder.replica, lastHolderQuestion, asks, lookUpWithinMs)
    if (asked.kind === 'answer') return asked.value
    return asked.kind === 'gone' ? null : 'unknown'
  }

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
      const serial = slotsOf(node)?.current.serial
      if (serial === undefined) return false
      const known = knownHere(node.id, instance, serial) ?? (await knownElsewhere(node.id, instance, serial))
      if (known !== null) return known
      // After a restart of the plane, or when it was on another replica: what its agent said of itself last.
      const { report } = await store.observation(node.id)
      return report !== null && report.instance === instance && report.certificate.serial === serial
    },
  }
}
