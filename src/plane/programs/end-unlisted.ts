// Ends the leaves of outputs that are not listed any more: at once after the commit that took one from a list, or a node from its
// vCluster. What a crash, a fault or another replica that has stopped since may have left is looked at by the replica that leads. Where
// nothing has changed nothing is looked at.

import type { Attribution } from '#domain/core/change.ts'
import type { EntryType } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { outputsFor } from '#domain/programs/output.ts'
import { leavesOf, programKey } from '#domain/programs/program.ts'
import { decideEndUnlisted } from '#domain/programs/unlisted.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { withStore, type Core, type FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { everyRow } from '#plane/core/pages.ts'
import { programsOf, vclusterOf } from '#plane/core/programs-of-node.ts'
import { takeTurns } from '#plane/core/turns.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { turn } from '#platform/timers.ts'

const by: Attribution = { actor: 'system:programs', source: null, correlation: null }

/** Every five minutes, where this replica leads. */
const owedEveryMs = 300_000
/** Beyond that all nodes are looked at. */
const mostOwed = 1000

type SweepCore = FlowCore & Pick<Core, 'timers'>

const assigning: ReadonlySet<EntryType> = new Set<EntryType>(['node.assigned', 'node.unassigned', 'node.moved'])

/** Returns the sweep of the leader. Commits of other replicas are followed at once by the replica that made them. */
export const followListedOutputs = (core: SweepCore & Pick<Core, 'log' | 'feed'>): UpkeepTask => {
  const inTurn = takeTurns()
  let sweeping = false
  /** Before the first look all of them: what was left before this start is not known. */
  let owesAll = true
  const owed = new Set<NodeId>()

  const failed = (error: unknown): void => {
    core.log.warn({ err: error }, 'outputs that are not listed any more could not be ended; it is tried again')
  }
  const owe = (node: NodeId): void => {
    if (owed.size < mostOwed) owed.add(node)
    else owesAll = true
  }
  const end = async (acting: SweepCore, node: NodeId): Promise<void> => {
    // Until it is done: what fails is tried again, and keeps no other node waiting.
    owe(node)
    const done = await endUnlisted(acting, node).catch((error: unknown) => failed(error))
    if (done === true) owed.delete(node)
  }
  const sweep = async (acting: SweepCore): Promise<void> => {
    owesAll = false
    try {
      for (const node of await nodesWithLeaves(acting)) {
        await end(acting, node)
        await turn(acting.timers)
      }
    } catch (error) {
      owesAll = true
      throw error
    }
  }
  core.feed.subscribe('listed outputs', ({ origin, writes, entries }) => {
    const nodes = entries.flatMap(({ entry: { type, node } }) => (assigning.has(type) && node !== null ? [node] : []))
    const isListChanged = writes.some(({ put }) => put === 'profile' || put === 'vcluster')
    if (origin === 'elsewhere') {
      nodes.forEach(owe)
      owesAll ||= isListChanged
      return
    }
    for (const node of nodes) inTurn(() => end(core, node)).catch(failed)
    if (sweeping || !isListChanged) return
    sweeping = true
    inTurn(() => {
      // What is committed from here on is swept again.
      sweeping = false
      return sweep(core)
    }).catch(failed)
  })
  return {
    name: 'unlisted outputs',
    where: 'leader',
    everyMs: owedEveryMs,
    run: (asLeader) =>
      inTurn(async () => {
        const leader = withStore(core, asLeader)
        if (owesAll) await sweep(leader)
        for (const node of [...owed]) await end(leader, node)
      }),
  }
}

/** Other work gets its turn in between: on SQLite each of these reads ends in the turn it is asked in. */
const nodesWithLeaves = async ({ store, timers }: SweepCore): Promise<ReadonlySet<NodeId>> => {
  const nodes = new Set<NodeId>()
  for await (const program of everyRow(store, 'program', programKey, { timers }))
    // Also those that have expired by this clock: it may be wrong, and there is no second look.
    if (leavesOf(program).length > 0) nodes.add(program.node)
  return nodes
}

/** False: it has to be tried again. */
const endUnlisted = async (core: FlowCore, id: NodeId): Promise<boolean> => {
  const { store, clock } = core
  const done = await commitDecision(core, async () => {
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
  return !isRefusal(done)
}
