// An output that neither the profile nor the vCluster of a node lists any more: its leaves are denied.

import { nodeDecided, readOf, type NodeDecided, type NodeFacts, type Row } from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { outputsFor, type OutputList } from './output.ts'
import { programsEnded, type Program } from './program.ts'

export type UnlistedFacts = NodeFacts & {
  readonly profile: Row<OutputList>
  readonly vcluster: Row<OutputList> | null
  readonly programs: readonly Row<Program>[]
  readonly domain: Row<DomainSettings>
}

export const decideEndUnlisted = (facts: UnlistedFacts): NodeDecided | Unchanged => {
  const { node, profile, vcluster, programs, domain, by, nowMs } = facts
  const listed = new Set(outputsFor(profile.value, vcluster?.value ?? null).map(({ name }) => name))
  const ended = programsEnded(
    {
      ...{ programs, by, nowMs, toleranceMs: domain.value.clockToleranceMs },
      why: 'its output is not listed any more',
      reason: 'cessation-of-operation',
    },
    ({ output }) => !listed.has(output),
  )
  const [first, ...rest] = ended.entries
  if (first === undefined) return { kind: 'unchanged' }
  return nodeDecided(node, node.value, [first, ...rest], {
    reads: [
      readOf('profile', profile.value.name, profile),
      ...(vcluster === null ? [] : [readOf('vcluster', vcluster.value.name, vcluster)]),
      readOf('domain', 'domain', domain),
      ...ended.reads,
    ],
    writes: ended.writes,
  })
}
