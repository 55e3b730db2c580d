// Ends the leaves of outputs that are not listed any more: at once after the commit that took one from a list, or a node from its
// vCluster; and by a walk over all programs, for what a crash in between has left.

import type { Attribution } from '#domain/core/change.ts'
import type { EntryType } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import { outputsFor } from '#domain/programs/output.ts'
import { liveLeaves, programKey } from '#domain/programs/program.ts'
import { decideEndUnlisted } from '#domain/programs/unlisted.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { everyRow } from '#plane/core/pages.ts'
import { programsOf, vclusterOf } from '#plane/core/programs-of-node.ts'
import { takeTurns } from '#plane/core/turns.ts'
import { turn } from '#platform/timers.ts'

const by: Attribution = { actor: 'system:programs', source: null, correlation: null }

/** Every five minutes, where this replica leads. */
export const unlistedEveryMs = 300_000

type SweepCore = FlowCore & Pick<Core, 'timers'>

const assigning: ReadonlySet<EntryType> = new Set<EntryType>(['node.assigned', 'node.unassigned', 'node.moved'])

/** Commits of other replicas are followed by the replica that made them. */
export const followListedOutputs = (core: SweepCore & Pick<Core, 'log' | 'feed'>): void => {
  const inTurn = takeTurns()
  let sweeping = false
  const failed = (error: unknown): void => {
    core.log.warn({ err: error }, 'outputs that are not listed any more could not be ended; it is tried again')
  }
  core.feed.subscribe('listed outputs', ({ origin, writes, entries }) => {
    if (origin !== 'here') return
    for (const { entry } of entries) {
      const { type, node } = entry
      if (assigning.has(type) && node !== null) inTurn(() => endUnlisted(core, node)).catch(failed)
    }
    if (sweeping || !writes.some(({ put }) => put === 'profile' || put === 'vcluster')) return
    sweeping = true
    inTurn(() => {
      // What is committed from here on is swept again.
      sweeping = false
      return sweepUnlisted(core)
    }).catch(failed)
  })
}

/** Other work gets its turn in between: on SQLite each of these reads ends in the turn it is asked in. */
export const sweepUnlisted = async (core: SweepCore): Promise<void> => {
  const { store, timers } = core
  const nowMs = core.clock.nowMs()
  const nodes = new Set<NodeId>()
  for await (const program of everyRow(store, 'program', programKey, { timers }))
    if (liveLeaves(program, nowMs).length > 0) nodes.add(program.node)
  for (const node of nodes) {
    await endUnlisted(core, node)
    await turn(timers)
  }
}

const endUnlisted = async (core: FlowCore, id: NodeId): Promise<void> => {
  const { store, clock } = core
  await commitDecision(core, async () => {
    const node = await store.get('node', id)
    const profile = node === null ? null : await store.get('profile', node.value.profile)
    if (node === null || profile === null) return { kind: 'unchanged' } as const
    const vcluster = await vclusterOf(store, node.value)
    const programs = await programsOf(store, id)
    const listed = new Set(outputsFor(profile.value, vcluster?.value ?? null).map(({ name }) => name))
    if (programs.every(({ value }) => listed.has(value.output))) return { kind: 'unchanged' } as const
    const domain = await domainSettingsRow(store)
    return decideEndUnlisted({ node, profile, vcluster, programs, domain, by, nowMs: clock.nowMs() })
  })
}
