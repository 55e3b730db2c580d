// The state of a node's overlay, as its agent reports it at every change and once after every hello. A report that could not be
// decided, after a lost race or beyond the write limit, is decided with the node's next frame.

import type { Attribution } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { decideOverlayShown, type CheckFailure, type OverlayShown } from '#domain/fleet/overlay-shown.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import type { OverlayStateBody } from '#wire/node/node-runs.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import { busyOver, commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type OverlayIntake = {
  take(principal: NodePrincipal, state: OverlayStateBody, correlation: string): Promise<void>
  /** Decides what was left undecided of this node, if anything was. */
  again(principal: NodePrincipal, correlation: string): Promise<void>
  /** The node has no channel here any more: it sends the whole state again over its next channel. */
  forget(node: NodeId): void
}

const tries = { tries: 4, onBusy: busyOver('node') }

export const openOverlayIntake = (core: FlowCore, writeLimit: WriteLimit): OverlayIntake => {
  const undecided = new Map<NodeId, OverlayShown>()

  const decide = async (principal: NodePrincipal, correlation: string): Promise<void> => {
    const by: Attribution = { actor: actorOf(principal), source: principal.source, correlation }
    const look = async () => {
      const shown = undecided.get(principal.id)
      const node = await core.store.get('node', principal.id)
      if (shown === undefined || node === null) return { kind: 'left' } as const
      const verdict = decideOverlayShown({ node, shown, by, nowMs: core.clock.nowMs() })
      if (verdict.kind === 'decided' && writeLimit.take(principal.id) !== null) return { kind: 'left' } as const
      return { ...verdict, shown }
    }
    const done = await commitDecision(core, look, tries)
    if (done.kind === 'left' || done.kind === 'refused') return
    // Something newer may have come meanwhile.
    if (undecided.get(principal.id) === done.shown) undecided.delete(principal.id)
  }

  return {
    async take(principal, state, correlation) {
      core.store.observe(principal.id, { overlay: state })
      undecided.set(principal.id, shownIn(state))
      await decide(principal, correlation)
    },
    async again(principal, correlation) {
      if (undecided.has(principal.id)) await decide(principal, correlation)
    },
    forget: (node) => void undecided.delete(node),
  }
}

const shownIn = (state: OverlayStateBody): OverlayShown => {
  const { applied, detail, services } = state
  const failed = services
    .filter(({ state: how }) => how === 'failed')
    .map(({ name, error = null, output = [] }) => ({ name, error, output }))
  // Agents of 0.3 call a service that failed drift, too: it has a condition of its own.
  const drift = state.drift.filter((line) => !failed.some(({ name }) => line === `service ${name}: not running`))
  return { applied, detail, drift, failed, unhealthy: failedChecks(state) }
}

/** Null: nothing is known of its overlay. */
export const failedChecks = (state: OverlayStateBody | null): readonly CheckFailure[] =>
  (state?.checks ?? []).filter((check) => check.state === 'failed').map(({ name, line }) => ({ name, line }))
