// Whether a node could bring its WireGuard peers into force. Its agent says so for every set it is sent; the registry is
// asked only where that is news.

import { decideClear, decideRaise } from '#domain/core/conditions.ts'
import type { NodeId } from '#domain/core/node.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import type { NodePace } from '#plane/limits/node-pace.ts'
import type { UseDeps } from '#plane/core/use-certificate.ts'

export type PeersAppliedDeps = UseDeps & { readonly pace: NodePace }

export type PeersApplied = { readonly applied: boolean; readonly detail: string | null }

export type PeersIntake = {
  take(deps: PeersAppliedDeps, principal: NodePrincipal, said: PeersApplied, correlation: string): Promise<void>
  /** The node has no channel here any more. */
  forget(node: NodeId): void
}

const tries = 4

export const openPeersIntake = (): PeersIntake => {
  /** What the registry says, as far as it was looked at on this channel. */
  const known = new Map<NodeId, boolean>()
  return {
    async take(deps, principal, { applied, detail }, correlation) {
      const { id } = principal
      if (known.get(id) === applied) return
      const by = { actor: actorOf(principal), source: principal.source, correlation }
      // What is lost to a crowd or to its own hurry is decided with the next set.
      for (let attempt = 0; attempt < tries; attempt++) {
        const node = await deps.store.get('node', id)
        if (node === null) return
        const facts = { node, by, nowMs: deps.clock.nowMs(), name: 'wireguard_failed' } as const
        const reason = detail ?? 'the agent could not bring its WireGuard peers into force'
        const verdict = applied ? decideClear(facts) : decideRaise({ ...facts, reason, evidence: {} })
        if (verdict.kind === 'decided') {
          if (deps.pace.hurry(id) !== null) return
          const outcome = await deps.store.commit(verdict.change)
          if (outcome === 'lost-race') continue
          deps.feed.publish(outcome)
        }
        known.set(id, applied)
        return
      }
    },
    forget: (node) => void known.delete(node),
  }
}
