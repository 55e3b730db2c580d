// The names of a node, as operators register them and take them away.

import type { Attribution } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideAddNames, decideRemoveNames, readNames } from '#domain/programs/node-names.ts'
import { outputsFor } from '#domain/programs/output.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { claimFacts, namesHeldBy, programsOf, vclusterOf } from '#plane/core/programs-of-node.ts'

export type NamesChanged = { readonly kind: 'changed'; readonly names: readonly string[] }

export const addNames = async (
  core: FlowCore,
  id: NodeId,
  texts: readonly string[],
  by: Attribution,
): Promise<NamesChanged | Refusal> => {
  const { store } = core
  const wanted = readNames(texts)
  if (isRefusal(wanted)) return wanted
  const done = await commitDecision(core, async () => {
    const node = await store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const held = await namesHeldBy(store, id)
    const adding = await claimFacts(store, wanted, id)
    return decideAddNames({ node, held, adding, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'changed', names: done.names }
}

export const removeNames = async (
  core: FlowCore,
  id: NodeId,
  texts: readonly string[],
  by: Attribution,
): Promise<NamesChanged | Refusal> => {
  const { store } = core
  const removing = readNames(texts)
  if (isRefusal(removing)) return removing
  const done = await commitDecision(core, async () => {
    const node = await store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const profile = await store.get('profile', node.value.profile)
    const vcluster = await vclusterOf(store, node.value)
    return decideRemoveNames({
      node,
      removing,
      held: await namesHeldBy(store, id),
      programs: await programsOf(store, id),
      outputs: outputsFor(profile?.value ?? { outputs: [] }, vcluster?.value ?? null),
      domain: await domainSettingsRow(store),
      by,
      nowMs: core.clock.nowMs(),
    })
  })
  return done.kind === 'refused' ? done : { kind: 'changed', names: done.names }
}
