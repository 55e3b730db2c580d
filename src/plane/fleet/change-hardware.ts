// Hardware profiles, and what is known of the machines under them.

import type { Attribution, NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { HardwareProfile } from '#domain/core/hardware-profile.ts'
import {
  decideCreateHardwareProfile,
  decideMachineReport,
  decideRemoveHardwareProfile,
  decideTag,
  tagsAfter,
  type CreateHardwareProfileFacts,
  type HardwareProfileDecided,
  type MachineReport,
  profilesOf,
} from '#domain/fleet/hardware-rules.ts'
import { decideProvisioning, type ProvisioningReport } from '#domain/fleet/provisioning.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { everyNode } from '#plane/core/pages.ts'
import type { FlowCore } from '#plane/core/core.ts'

/** There are a handful: one for each kind of machine that is bought. */
const mostProfiles = 1000

export const hardwareProfiles = async (store: Pick<Store, 'list'>): Promise<readonly HardwareProfile[]> =>
  (await store.list('hardware-profile', { after: null, limit: mostProfiles }))
    .map(({ value }) => value)
    .filter(({ removedAtMs }) => removedAtMs === null)

export const createHardwareProfile = (
  core: FlowCore,
  asked: CreateHardwareProfileFacts['asked'],
  by: Attribution,
): Promise<Done<HardwareProfileDecided> | Refusal> =>
  commitDecision(core, async () => {
    const existing = await core.store.get('hardware-profile', asked.tag)
    const conflicting = nodesUnderAnother(
      await nodesWithTags(core.store),
      asked.tag,
      await hardwareProfiles(core.store),
    )
    return decideCreateHardwareProfile({ existing, asked, conflicting, by, nowMs: core.clock.nowMs() })
  })

export const removeHardwareProfile = (
  core: FlowCore,
  tag: string,
  by: Attribution,
): Promise<Done<HardwareProfileDecided> | Refusal> =>
  commitDecision(core, async () => {
    const profile = await core.store.get('hardware-profile', tag)
    if (profile === null) return refuse('HARDWARE_PROFILE_NOT_FOUND', tag)
    return decideRemoveHardwareProfile(profile, by, core.clock.nowMs())
  })

export const tagNode = (
  core: FlowCore,
  id: NodeId,
  change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    return decideTagging(core, change, { node, by, nowMs: core.clock.nowMs() })
  })

/** On what is read now; nothing is written. */
export const decideTagging = async (
  { store }: Pick<FlowCore, 'store'>,
  change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  facts: NodeFacts,
): Promise<NodeDecided | Refusal> => {
  const tags = tagsAfter(facts.node.value.machine.tags, change)
  const profiles = await Promise.all(tags.map(async (tag) => ({ tag, row: await store.get('hardware-profile', tag) })))
  return decideTag({ ...facts, ...change, profiles })
}

export const reportMachine = (
  core: FlowCore,
  id: NodeId,
  report: MachineReport,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    return decideMachineReport({ node, report, by, nowMs: core.clock.nowMs() })
  })

export const reportProvisioning = async (
  core: FlowCore,
  id: NodeId,
  report: ProvisioningReport | null,
  by: Attribution,
): Promise<{ readonly kind: 'reported'; readonly node: Node } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const verdict = decideProvisioning({ node, report, by, nowMs: core.clock.nowMs() })
    return verdict.kind === 'unchanged' ? { ...verdict, node: node.value } : verdict
  })
  return done.kind === 'refused' ? done : { kind: 'reported', node: done.node }
}

export type TaggedNode = { readonly id: NodeId; readonly tags: readonly string[] }

/** Those with more than one, which alone can be under two hardware profiles. All nodes are read, when one is made, which is seldom. */
export const nodesWithTags = async (store: Store): Promise<readonly TaggedNode[]> => {
  const found: TaggedNode[] = []
  for await (const { id, machine } of everyNode(store))
    if (machine.tags.length > 1) found.push({ id, tags: machine.tags })
  return found
}

/** Machines that carry this tag and that of a hardware profile already. */
export const nodesUnderAnother = (
  nodes: readonly TaggedNode[],
  tag: string,
  all: readonly HardwareProfile[],
): readonly NodeId[] => {
  const profiles = all.filter((profile) => profile.tag !== tag)
  return nodes.flatMap(({ id, tags }) => (tags.includes(tag) && profilesOf(tags, profiles).length > 0 ? [id] : []))
}
