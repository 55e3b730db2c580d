// Reads what an action would concern, and lets the domain say what would become of it.

import type { Attribution, Row } from '#domain/core/change.ts'
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
import { rotationNowOf, signerWithdrawalOf } from '#domain/plans/signer-effects.ts'
import { decideKeepPlan, mostPlanned, type PlanDecided, type PlanAction, type PlanEffect } from '#domain/plans/plan.ts'
import type { NodeChange } from '#domain/plans/node-change.ts'
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
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { everyNode } from '#plane/core/pages.ts'
import type { PlaneNames } from '#plane/settings/plane-names.ts'
import type { TaskSignersHere } from '#plane/tasks/task-signers.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import { turn } from '#platform/timers.ts'
import { effectOfChange } from './change-nodes.ts'
import { effectsOfTasks } from './create-tasks.ts'
import { selectedNodes } from './selected-nodes.ts'

type ReadingCore = Pick<Core, 'store' | 'clock' | 'timers'>
export type PlanCore = FlowCore & Pick<Core, 'timers'>

export type PlanReading = {
  readonly authority: LeafLimit
  readonly planeNames: PlaneNames
  readonly channels: Pick<OpenChannels, 'isConnected'>
  readonly taskSigners: Pick<TaskSignersHere, 'stored'>
}

export const computePlan = async (
  core: PlanCore,
  reading: PlanReading,
  action: OtherAction,
  by: Attribution,
): Promise<Done<PlanDecided> | Refusal> => {
  // Replicas of the release before do not know such plans.
  if (core.store.unfinishedUpgrade() !== null) {
    if (action.kind === 'change-nodes') return refuse('UPGRADE_UNFINISHED', 'nodes are changed by a plan')
    if (action.kind === 'create-tasks') return refuse('UPGRADE_UNFINISHED', 'tasks are queued for many nodes')
  }
  const id = sortableId(core.clock.nowMs(), core.random)
  return commitDecision(core, async () => {
    const lines = await linesOf(core, reading, action)
    if (isRefusal(lines)) return lines
    const { effects, nodes } = lines
    if (nodes.length === 0 && 'select' in action) return refuse('NODES_NOT_FOUND')
    // What was selected is kept by name as well: no other node is ever touched.
    const kept = 'nodes' in action ? { ...action, nodes } : action
    return decideKeepPlan({ id, action: kept, effects, by, nowMs: core.clock.nowMs() })
  })
}

/** A document is decided as a whole (declare-document.ts). */
export type OtherAction = Exclude<PlanAction, { kind: 'apply-document' }>

export const effectsOf = async (
  core: ReadingCore,
  reading: PlanReading,
  action: OtherAction,
): Promise<readonly PlanEffect[] | Refusal> => {
  const lines = await linesOf(core, reading, action)
  return isRefusal(lines) ? lines : lines.effects
}

/** `nodes`: those that it is for; effects may name others as well. */
type Lines = { readonly effects: readonly PlanEffect[]; readonly nodes: readonly NodeId[] }

const linesOf = async (core: ReadingCore, reading: PlanReading, action: OtherAction): Promise<Lines | Refusal> => {
  if (!isOnNodes(action)) {
    const effects = await ofOthers(core, reading, action)
    return isRefusal(effects) ? effects : { effects, nodes: [] }
  }
  const rows = await nodesOf(core, reading, action)
  if (isRefusal(rows)) return rows
  const effects = await onNodes(core, reading, action, rows)
  return isRefusal(effects) ? effects : { effects, nodes: rows.map(({ value }) => value.id) }
}

const isOnNodes = (action: OtherAction): action is NodesAction => 'nodes' in action || 'select' in action

const ofOthers = (
  core: ReadingCore,
  { authority, planeNames, taskSigners }: PlanReading,
  action: Exclude<OtherAction, NodesAction>,
): Promise<readonly PlanEffect[] | Refusal> => {
  switch (action.kind) {
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
    case 'rotate-signer':
    case 'withdraw-signer':
      return ofSigners(core, taskSigners, action)
  }
}

type NodesAction = Extract<PlanAction, { readonly select?: unknown }>

/** Those that are named, or those that are selected. */
const nodesOf = async (
  core: ReadingCore,
  { channels }: PlanReading,
  action: NodesAction,
): Promise<readonly Row<Node>[] | Refusal> => {
  if (action.select !== undefined) return selectedNodes(core, channels, action.select)
  const named = 'nodes' in action ? [...new Set(action.nodes)] : []
  const rows = await Promise.all(named.map((id) => core.store.get('node', id)))
  const missing = named.find((_, at) => rows[at] === null)
  return missing === undefined ? rows.filter((row) => row !== null) : refuse('NODE_NOT_FOUND', missing)
}

const onNodes = async (
  core: ReadingCore,
  { channels }: Pick<PlanReading, 'channels'>,
  action: NodesAction,
  rows: readonly Row<Node>[],
): Promise<readonly PlanEffect[] | Refusal> => {
  const nodes = rows.map(({ value }) => value)
  switch (action.kind) {
    case 'revoke-nodes':
      return [...nodes.map(revocationOf), ...(await cutByBans(core, nodes))]
    case 'decommission-nodes':
      return [...nodes.map((node) => decommissioningOf(node, action.force)), ...(await cutByBans(core, nodes))]
    case 'purge-nodes':
      return ofPurge(core, nodes)
    case 'create-tasks':
      return effectsOfTasks(core, action, rows)
    case 'change-nodes':
      return (
        (await noDestination(core, action.change)) ??
        inTurns(core, rows, (row) => effectOfChange(core, channels, row, action.change))
      )
  }
}

/** Read together; between two such lots other work gets a turn. */
const readTogether = 100

const inTurns = async <T, R>(
  { timers }: ReadingCore,
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> => {
  const results: R[] = []
  for (let start = 0; start < items.length; start += readTogether) {
    results.push(...(await Promise.all(items.slice(start, start + readTogether).map(work))))
    await turn(timers)
  }
  return results
}

/** A vCluster that is not there is one mistake, and not one of each node. */
const noDestination = async ({ store }: ReadingCore, change: NodeChange): Promise<Refusal | null> => {
  if (change.verb !== 'assign' && change.verb !== 'move') return null
  const vcluster = await store.get('vcluster', change.to)
  return vcluster === null || vcluster.value.deletedAtMs !== null ? refuse('VCLUSTER_NOT_FOUND', change.to) : null
}

const ofPurge = async (core: ReadingCore, nodes: readonly Node[]): Promise<readonly PlanEffect[] | Refusal> => {
  const effects: PlanEffect[] = []
  const barred: Refusal[] = []
  for (const { id } of nodes) {
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
const cutByBans = async (core: ReadingCore, nodes: readonly Node[]): Promise<readonly PlanEffect[]> => {
  const { store, clock } = core
  const living = nodes.filter(({ membership }) => membership.kind !== 'revoked')
  const sharers = await inTurns(core, living, async (node) => {
    const slots = slotsOf(node)
    const { bans } = await keysOf(store, slots === null ? [] : everySlot(slots), node)
    const keys = bans.map(({ spki }) => spki)
    return { node, others: (await keySharers(store, node.id, keys, clock.nowMs())).nodes }
  })
  const named = new Set(nodes.map(({ id }) => id))
  const lines: PlanEffect[] = []
  for (const { node, others } of sharers) {
    for (const other of others) {
      if (named.has(other.id)) continue
      named.add(other.id)
      lines.push(cutWithKeyOf(other, node))
    }
  }
  return lines
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
  const profile = await liveProfile(store, name)
  if (isRefusal(profile)) return profile
  const nowMs = clock.nowMs()
  const longestLeafMs = issuer.longestLeafMs()
  const issuers = await readIssuers(store)
  const changed = decideChangeProfile({
    ...{ profile, migration: await store.get('issuer-migration', name) },
    ...{ set, by: byPlan, longestLeafMs, issuers, nowMs },
  })
  if (isRefusal(changed)) return changed
  const { value: before, version } = profile
  const nodes = await nodesOfProfile(store, name)
  return profileChangeOf({ before, after: changed.profile, keys: Object.keys(set), version, nodes, nowMs })
}

/** Computing a plan writes nothing, so its actor is never journaled. */
const byPlan: Attribution = { actor: 'system:plan', source: null, correlation: null }

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

const ofSigners = async (
  { store }: ReadingCore,
  taskSigners: PlanReading['taskSigners'],
  action: Extract<PlanAction, { kind: 'rotate-signer' | 'withdraw-signer' }>,
): Promise<readonly PlanEffect[] | Refusal> => {
  const row = await taskSigners.stored()
  if (row === null) return refuse('SIGNERS_NOT_READY')
  const facts = { row, reported: await store.countTaskVerifiers() }
  if (action.kind === 'rotate-signer') return rotationNowOf(facts)
  const signer = row.value.signers.find(({ key }) => key === action.key)
  return signer === undefined ? refuse('SIGNER_NOT_FOUND', action.key) : signerWithdrawalOf(facts, signer)
}

export const nodesOfProfile = async (store: Store, profile: string) =>
  withRehearsals(store, await nodesWith(store, { profile }))

const withRehearsals = (store: Store, nodes: readonly Node[]) =>
  Promise.all(nodes.map(async (node) => ({ node, rehearsedAtMs: await store.rehearsedAtMs(node.id) })))

const nodesWith = (store: Store, only: Partial<Pick<NodeQuery, 'profile' | 'vcluster'>>): Promise<readonly Node[]> =>
  Array.fromAsync(everyNode(store, { ...only, limit: mostPlanned }))
