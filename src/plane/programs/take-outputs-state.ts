// What agents report of their outputs, as conditions of their nodes and as the end of leaves of earlier epochs. What the write limit
// of a node leaves undecided is decided with its next report.

import type { NodeId } from '#domain/core/node.ts'
import { boundedText, type Attribution } from '#domain/core/change.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import { decideOutputsShown, outputsSeen, type OutputSeen, type OutputShown } from '#domain/programs/outputs-shown.ts'
import { busyOver, commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { programsOf } from '#plane/core/programs-of-node.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import { longestPlace } from '#wire/programs/programs-api.ts'

export type OutputsIntake = {
  take(principal: NodePrincipal, shown: readonly OutputShown[], correlation: string): Promise<void>
  /** Decides what was left undecided of this node, if anything was. */
  again(principal: NodePrincipal, correlation: string): Promise<void>
  /** The node has no channel here any more: it sends the whole state again over its next channel. */
  forget(node: NodeId): void
}

const tries = { tries: 4, onBusy: busyOver('node') }

export const openOutputsIntake = (
  core: FlowCore,
  writeLimit: WriteLimit,
  onShown: (node: NodeId, outputs: readonly OutputSeen[]) => void,
): OutputsIntake => {
  const undecided = new Map<NodeId, readonly OutputShown[]>()

  const decide = async (principal: NodePrincipal, correlation: string): Promise<void> => {
    const by: Attribution = { actor: actorOf(principal), source: principal.source, correlation }
    const look = async () => {
      const shown = undecided.get(principal.id)
      const node = await core.store.get('node', principal.id)
      // A session of an epoch that has ended says nothing about the one that is.
      if (shown === undefined || node === null || node.value.epoch !== principal.epoch) return { kind: 'left' } as const
      const programs = await programsOf(core.store, principal.id)
      onShown(principal.id, outputsSeen(shown, programs))
      const domain = await domainSettingsRow(core.store)
      const verdict = decideOutputsShown({ node, shown, programs, domain, by, nowMs: core.clock.nowMs() })
      if (verdict.kind === 'decided' && writeLimit.take(principal.id) !== null) return { kind: 'left' } as const
      return { ...verdict, shown }
    }
    const done = await commitDecision(core, look, tries)
    if (done.kind === 'left' || done.kind === 'refused') return
    if (undecided.get(principal.id) === done.shown) undecided.delete(principal.id)
  }

  return {
    async take(principal, shown, correlation) {
      // A replica of the release before does not know the condition.
      if (core.store.unfinishedUpgrade() !== null) return
      const bounded = shown.map((one) => ({
        ...one,
        failure: one.failure === null ? null : boundedText(one.failure),
        place: one.place === null || one.place === undefined ? one.place : boundedText(one.place, longestPlace),
      }))
      core.store.observe(principal.id, { outputs: { epoch: principal.epoch, outputs: bounded } })
      undecided.set(principal.id, bounded)
      await decide(principal, correlation)
    },
    async again(principal, correlation) {
      if (undecided.has(principal.id)) await decide(principal, correlation)
    },
    forget: (node) => void undecided.delete(node),
  }
}
