// Who has brought which WireGuard peers into force, on whichever replica its channel is. Each replica knows what was
// confirmed to it.

import type { NodeId } from '#domain/core/node.ts'
import type { PeerProofs } from '#plane/core/open-channels.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Holding } from '#plane/sessions/holding.ts'
import type { PeerBook } from './peer-book.ts'
import {
  answerReplicas,
  askReplica,
  lookUpWithinMs,
  peersAppliedQuestion,
  peersWithoutQuestion,
} from '#plane/cluster/replica-questions.ts'

export type PeerProofParts = {
  readonly book: PeerBook
  readonly holding: Pick<Holding, 'elsewhere'>
  readonly replicas: Pick<Replicas, 'ask' | 'onQuestion' | 'leased' | 'self'>
}

/** A question is carried by the store, which takes short ones. */
const nodesAtOnce = 50

export const openPeerProofs = ({ book, holding, replicas }: PeerProofParts): PeerProofs => {
  const withoutHere = (key: string, node: NodeId): number | null =>
    book.groupOf(node)?.confirmedWithout(key, node) ?? null
  const appliedHere = (node: NodeId): string | null => book.groupOf(node)?.appliedBy(node) ?? null

  answerReplicas(replicas, peersWithoutQuestion, async ({ key, nodes }) => nodes.map((node) => withoutHere(key, node)))
  answerReplicas(replicas, peersAppliedQuestion, async ({ node }) => appliedHere(node))

  return {
    peersOf: (node) => (book.groupOf(node)?.others(node) ?? []).map((peer) => peer.node),

    async peersWithout(key, nodes) {
      const confirmed = new Map<NodeId, number>()
      const note = (node: NodeId, atMs: number | null): void => {
        if (atMs !== null) confirmed.set(node, Math.min(atMs, confirmed.get(node) ?? Infinity))
      }
      for (const node of nodes) note(node, withoutHere(key, node))
      const others = (await replicas.leased()).filter(({ number }) => number !== replicas.self)
      const open = nodes.filter((node) => !confirmed.has(node))
      for (let from = 0; from < open.length && others.length > 0; from += nodesAtOnce) {
        const some = open.slice(from, from + nodesAtOnce)
        await Promise.all(
          others.map(async ({ number }) => {
            const asks = { key, nodes: some }
            const asked = await askReplica(replicas, number, peersWithoutQuestion, asks, lookUpWithinMs)
            if (asked.kind === 'answer') some.forEach((node, at) => note(node, asked.value[at] ?? null))
          }),
        )
      }
      return confirmed
    },

    async stateOf(node) {
      const group = book.nameOf(node)
      const holder = await holding.elsewhere(node)
      if (holder === null) return { group, applied: appliedHere(node) }
      const asked = await askReplica(replicas, holder.replica, peersAppliedQuestion, { node }, lookUpWithinMs)
      return { group, applied: asked.kind === 'answer' ? asked.value : null }
    },
  }
}
