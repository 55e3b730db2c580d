// Whether a node could apply its WireGuard peers. Its agent reports it for every set; the registry is changed only where the
// report differs from the last one.

import { decideClear, decideRaise } from '#domain/core/conditions.ts'
import type { NodeId } from '#domain/core/node.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import { busyOver, commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type PeersApplied = { readonly applied: boolean; readonly detail: string | null }

export type PeersIntake = {
  take(principal: NodePrincipal, said: PeersApplied, correlation: string): Promise<void>
  /** The node has no channel here any more. */
  forget(node: NodeId): void
}

const tries = { tries: 4, onBusy: busyOver('node') }

export const openPeersIntake = (core: FlowCore, writeLimit: WriteLimit): PeersIntake => {
  /** What the registry says, as far as it was looked at on this channel. */
  const known = new Map<NodeId, boolean>()
  return {
    async take(principal, { applied, detail }, correlation) {
      const { id } = principal
      if (known.get(id) === applied) return
      const by = { actor: actorOf(principal), source: principal.source, correlation }
      const decide = async () => {
        const node = await core.store.get('node', id)
        if (node === null) return { kind: 'left' } as const
        const facts = { node, by, nowMs: core.clock.nowMs(), name: 'wireguard_failed' } as const
        const reason = detail ?? 'the agent could not bring its WireGuard peers into force'
        const verdict = applied ? decideClear(facts) : decideRaise({ ...facts, reason, evidence: {} })
        return verdict.kind === 'decided' && writeLimit.take(id) !== null ? ({ kind: 'left' } as const) : verdict
      }
      const { kind } = await commitDecision(core, decide, tries)
      // What is lost to a crowd or to the write limit is decided with the next set.
      if (kind === 'committed' || kind === 'unchanged') known.set(id, applied)
    },
    forget: (node) => void known.delete(node),
  }
}
