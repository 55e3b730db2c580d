// Reads what an action would concern, and lets the domain say what would become of it.

import type { Attribution } from '#domain/core/change.ts'
import { withdrawalBarred, withdrawnWith } from '#domain/ca/issuer.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import {
  authorityWithdrawalOf,
  cutWithKeyOf,
  decommissioningOf,
  profileChangeOf,
  purgeOf,
  revocationOf,
  rotationOf,
  tokenRevocationOf,
  vclusterDeletionOf,
} from '#domain/plans/plan-effects.ts'
import { decideKeepPlan, mostPlanned, type PlanDecided, type PlanAction, type PlanEffect } from '#domain/plans/plan.ts'
import { purgeBarred, purgeWords } from '#domain/revocation/purge.ts'
import { decideChangeProfile } from '#domain/settings/profile-rules.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { LeafLimit } from '#plane/settings/policy-routes.ts'
import type { NodeQuery, Store } from '#plane/store/contract/store.ts'
import { sortableId } from '#platform/random.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { keySharers } from '#plane/revocation/key-sharers.ts'
import { readPurge } from '#plane/revocation/purge-node.ts'
import { keysOf } from '#plane/revocation/withdraw-identity.ts'
import { everySlot, slotsOf } from '#domain/core/certificate.ts'
import { profilesByName } from '#plane/core/count-recoverable.ts'
import { everyNode } from '#plane/core/pages.ts'
import type { PlaneNames } from '#plane/settings/plane-names.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

type ReadingCore = Pick<Core, 'store' | 'clock' | 'timers'>
export type PlanCore = FlowCore & Pick<Core, 'timers'>

export type PlanReading = { readonly authority: LeafLimit; readonly planeNames: PlaneNames }

export const computePlan = async (
  core: PlanCore,
  reading: PlanReading,
  action: PlanAction,
  by: Attribution,
): Promise<Done<PlanDecided> | Refusal> => {
  const id = sortableId(core.clock.nowMs(), core.random)
  return commitDecision(core, async () => {
    const effects = await effectsOf(core, reading, action)
    return isRefusal(effects) ? effects : decideKeepPlan({ id, action, effects, by, nowMs: core.clock.nowMs() })
  })
}

export const effectsOf = (
  core: ReadingCore,
  { authority, planeNames }: PlanReading,
  action: PlanAction,
): Promise<readonly PlanEffect[] | Refusal> => {
  switch (action.kind) {
    case 'revoke-nodes':
      return ofNodes(core, action.nodes, revocationOf)
    case 'decommission-nodes':
      return ofNodes(core, action.nodes, (node) => decommissioningOf(node, action.force))
    case 'purge-nodes':
      return ofPurge(core, action.nodes)
    case 'revoke-token':
      return ofToken(core, action.token)
    case 'delete-vcluster':
      return ofVCluster(core.store, action.vcluster)
    case 'change-profile':
      return ofProfile(core, authority, action)
    case 'rotate-ca':
      return ofAuthority(core, action.compromised)
    case 'drop-name':
      return planeNames.effectsOfDrop(action.name)
  }
}

const ofNodes = async (
  { store, clock }: ReadingCore,
  ids: readonly NodeId[],
  effect: (node: Node) => PlanEffect,
): Promise<readonly PlanEffect[] | Refusal> => {
  const named = [...new Set(ids)]
  const rows = await Promise.all(named.map((id) => store.get('node', id)))
  const missing = named.find((_, at) => rows[at] === null)
  if (missing !== undefined) return refuse('NODE_NOT_FOUND', missing)
  const nodes = rows.flatMap((row) => (row === null ? [] : [row.value]))
  return [...nodes.map(effect), ...(await cutByBans(store, nodes, clock.nowMs()))]
}

const ofPurge = async (core: ReadingCore, ids: readonly NodeId[]): Promise<readonly PlanEffect[] | Refusal> => {
  const effects: PlanEffect[] = []
  const barred: Refusal[] = []
  for (const id of new Set(ids)) {
    const facts = await readPurge(core, id)
    if (isRefusal(facts)) return facts
    const { node, survey } = facts
    const refusal = purgeBarred(facts)
    if (refusal !== null) barred.push(refusal)
    const { version } = node
    effects.push(purgeOf(node.value, { barred: refusal?.detail ?? null, words: purgeWords(survey), version }))
  }
  const [first, ...others] = barred
  if (first === undefined || barred.length < effects.length) return effects
  // A plan that can do nothing would only offer to be applied.
  return others.length === 0 ? first : { ...first, detail: `${first.detail}; nor can the other ${others.length}` }
}

/** Other nodes that have a key of one of these; each is named once, with the first that would cut it. */
const cutByBans = async (store: Store, nodes: readonly Node[], nowMs: number): Promise<readonly PlanEffect[]> => {
  const lines = new Map<NodeId, PlanEffect>()
  for (const node of nodes) {
    if (node.membership.kind === 'revoked') continue
    const slots = slotsOf(node)
    const { bans } = await keysOf(store, slots === null ? [] : everySlot(slots), node)
    const keys = bans.map(({ spki }) => spki)
    for (const other of (await keySharers(store, node.id, keys, nowMs)).nodes) {
      const named = lines.has(other.id) || nodes.some(({ id }) => id === other.id)
      if (!named) lines.set(other.id, cutWithKeyOf(other, node))
    }
  }
  return [...lines.values()]
}

const tokensLookedAt = 100

const ofToken = async ({ store, clock }: ReadingCore, id: string): Promise<readonly PlanEffect[] | Refusal> => {
  const token = await store.tokenById(id)
  if (token === null) return refuse('TOKEN_NOT_FOUND', id)
  const { scope } = token.value
  if (scope.kind === 'domain') return tokenRevocationOf(token.value, [], null, clock.nowMs())
  const others = await store.tokens({ node: scope.node, limit: tokensLookedAt })
  const node = await store.get('node', scope.node)
  return tokenRevocationOf(
    token.value,
    others.map(({ value }) => value),
    node?.value ?? null,
    clock.nowMs(),
  )
}

const ofVCluster = async (store: Store, name: string): Promise<readonly PlanEffect[] | Refusal> => {
  const vcluster = await store.get('vcluster', name)
  if (vcluster === null || vcluster.value.deletedAtMs !== null) return refuse('VCLUSTER_NOT_FOUND', name)
  const nodes = await nodesWith(store, { vcluster: name })
  return vclusterDeletionOf(vcluster.value, nodes)
}

const ofProfile = async (
  { store, clock }: ReadingCore,
  issuer: LeafLimit,
  { profile: name, set }: Extract<PlanAction, { kind: 'change-profile' }>,
): Promise<readonly PlanEffect[] | Refusal> => {
  const profile = await store.get('profile', name)
  if (profile === null) return refuse('PROFILE_NOT_FOUND', name)
  const nowMs = clock.nowMs()
  const longestLeafMs = issuer.longestLeafMs()
  const changed = decideChangeProfile({ profile, set, by: nobody, longestLeafMs, nowMs })
  if (isRefusal(changed)) return changed
  const { value: before, version } = profile
  const nodes = await withRehearsals(store, await nodesWith(store, { profile: name }))
  return profileChangeOf({ before, after: changed.profile, keys: Object.keys(set), version, nodes, nowMs })
}

/** Computing a plan writes nothing, so its actor is never journaled. */
const nobody: Attribution = { actor: 'system:plan', source: null, correlation: null }

const ofAuthority = async (
  { store, clock }: ReadingCore,
  compromised: string | null,
): Promise<readonly PlanEffect[] | Refusal> => {
  const all = (await store.issuers()).map(({ value }) => value)
  if (compromised === null) {
    return rotationOf(all.filter(({ role, retiredAtMs }) => role === 'issuing' && retiredAtMs === null))
  }
  const barred = withdrawalBarred(all.find(({ id }) => id === compromised) ?? null)
  if (barred !== null) return barred
  const issuers = withdrawnWith(compromised, all)
  const profiles = await profilesByName(store)
  const nodes = await withRehearsals(store, await nodesWith(store, {}))
  return authorityWithdrawalOf({
    issuers,
    nodes: nodes.flatMap((one) => {
      const profile = profiles.get(one.node.profile)
      return profile === undefined ? [] : [{ ...one, profile }]
    }),
    nowMs: clock.nowMs(),
  })
}

const withRehearsals = (store: Store, nodes: readonly Node[]) =>
  Promise.all(nodes.map(async (node) => ({ node, rehearsedAtMs: await store.rehearsedAtMs(node.id) })))

const nodesWith = (store: Store, only: Partial<Pick<NodeQuery, 'profile' | 'vcluster'>>): Promise<readonly Node[]> =>
  Array.fromAsync(everyNode(store, { ...only, limit: mostPlanned }))
