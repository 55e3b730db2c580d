// The names of the plane as operators see them: which it has, who still needs one that is not configured any more, and dropping
// it. One that is no longer needed is dropped without an operator.

import { mergeParts, type Attribution, type ChangePart } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import type { Token } from '#domain/core/token.ts'
import { decideRevokeToken } from '#domain/enrollment/token.ts'
import { nameDropOf } from '#domain/plans/plan-effects.ts'
import type { PlanEffect } from '#domain/plans/plan.ts'
import { hasBundleBefore, isTokenAt, whyNeeded, type NameNeeds } from '#domain/settings/name-needs.ts'
import { bareName, claimedName } from '#domain/programs/name-claim.ts'
import {
  calledSinceMs,
  decideDropName,
  dropUnfit,
  hostOfUrl,
  isInCertificates,
  isOfPlane,
  wasJustRetaken,
  type NameDropped,
  type ServedClaim,
} from '#domain/programs/served-names.ts'
import type { ServedNames } from '#plane/authority/served-names.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { endpointSet, type PlaneUrls } from '#plane/core/configuration.ts'
import { withStore, type Core } from '#plane/core/core.ts'
import { profilesByName, recoverabilityNow, type ProfilesByName } from '#plane/core/count-recoverable.ts'
import { everyNode, everyRow } from '#plane/core/pages.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'

export type PlaneName = {
  readonly claim: ServedClaim
  readonly state: 'configured' | 'kept' | 'dropped'
  /** Of one that is kept; null of others. */
  readonly needs: NameNeeds | null
}

export type PlaneNames = {
  list(): Promise<readonly PlaneName[]>
  effectsOfDrop(host: string): Promise<readonly PlanEffect[] | Refusal>
  drop(host: string, by: Attribution): Promise<Done<NameDropped> | Refusal>
  /** Drops what is no longer needed. */
  readonly upkeep: UpkeepTask
}

export type PlaneNamesParts = {
  readonly names: Pick<ServedNames, 'isConfigured' | 'listensAt' | 'kept'>
  readonly urls: () => Pick<PlaneUrls, 'node' | 'recovery' | 'returnedAtMs'>
}

const upkeepEveryMs = 5000
const pageSize = 200

export const openPlaneNames = (core: Core, parts: PlaneNamesParts): PlaneNames => {
  const { names } = parts
  // What stood in the way last: most of the time it still does, and nothing else has to be looked at.
  let nodeInTheWay: NodeId | null = null
  /** Hashes of tokens, by name. */
  const tokensInTheWay = new Map<string, string>()

  const isNodeStillInTheWay = async (present: Present): Promise<boolean> => {
    const row = nodeInTheWay === null ? null : await core.store.get('node', nodeInTheWay)
    return row !== null && (await isInTheWay(core, present, row.value))
  }
  const isTokenStillInTheWay = async ({ renamedAtMs }: Present, name: string): Promise<boolean> => {
    const hash = tokensInTheWay.get(name)
    const row = hash === undefined ? null : await core.store.get('token', hash)
    return row !== null && isTokenAt(row.value, name, renamedAtMs, core.clock.nowMs())
  }
  /** The names that no unused token has. */
  const withoutTokens = async (present: Present, kept: readonly ServedClaim[]): Promise<readonly ServedClaim[]> => {
    const asked = new Set<string>()
    for (const { name } of kept) if (!(await isTokenStillInTheWay(present, name))) asked.add(name)
    if (asked.size === 0) return []
    for (const [name, { hash }] of await tokensAt(core, present, [...asked])) {
      tokensInTheWay.set(name, hash)
      asked.delete(name)
    }
    return kept.filter(({ name }) => asked.has(name))
  }
  const dropUnneeded = async (leader: Core): Promise<void> => {
    // Nothing shows when a join string without a secret is not needed any more: then an operator drops the name, and no node has to
    // be looked at.
    const kept = names
      .kept()
      .filter((claim) => claim.holder.joinStrings === 0 && !wasJustRetaken(claim, core.clock.nowMs()))
    if (kept.length === 0) return
    const present = await presentOf(leader, parts)
    if (await isNodeStillInTheWay(present)) return
    const unneeded = await withoutTokens(present, kept)
    if (unneeded.length === 0) return
    nodeInTheWay = await firstInTheWay(leader, present)
    if (nodeInTheWay !== null) return
    for (const { name } of unneeded) {
      const host = bareName(name)
      const dropped = await dropName(leader, parts, host, 'no node needs it any more', releasing)
      if (!isRefusal(dropped)) core.log.info({ host }, 'the plane has dropped a former name')
    }
  }

  return {
    async list() {
      const all = await Array.fromAsync(
        everyRow(core.store, 'name-claim', ({ name }) => name, { where: { holder: 'plane' } }),
      )
      const isKept = (claim: ServedClaim): boolean =>
        isInCertificates(claim) && !names.isConfigured(bareName(claim.name))
      const claims = all.filter(isOfPlane)
      const present = await presentOf(core, parts)
      const nodes = claims.some(isKept) ? await nodesInNeed(core, present) : []
      return Promise.all(
        claims.map(async (claim): Promise<PlaneName> => {
          if (claim.holder.dropped !== null) return { claim, state: 'dropped', needs: null }
          if (!isKept(claim)) return { claim, state: 'configured', needs: null }
          return { claim, state: 'kept', needs: { nodes, ...(await handedOutWith(core, present, claim)) } }
        }),
      )
    },
    async effectsOfDrop(host) {
      const row = await core.store.get('name-claim', claimedName(host))
      const unfit = dropUnfit({ host, row, configured: names.isConfigured(host), listensThere: names.listensAt(host) })
      if (unfit !== null || row === null || !isOfPlane(row.value)) return unfit ?? []
      const present = await presentOf(core, parts)
      const nodes = await nodesInNeed(core, present)
      return nameDropOf(host, { nodes, ...(await handedOutWith(core, present, row.value)) })
    },
    drop: (host, by) => dropName(core, parts, host, 'dropped by an operator', by),
    upkeep: {
      name: 'names of the plane',
      where: 'leader',
      everyMs: upkeepEveryMs,
      run: (asLeader) => dropUnneeded(withStore(core, asLeader)),
    },
  }
}

const releasing: Attribution = { actor: 'system:names', source: null, correlation: null }

/** Tokens with that name are void from then on: no machine that has one could reach the plane. */
const dropName = (
  core: Core,
  parts: PlaneNamesParts,
  host: string,
  why: string,
  by: Attribution,
): Promise<Done<NameDropped> | Refusal> =>
  commitDecision(core, async () => {
    const name = claimedName(host)
    const row = await core.store.get('name-claim', name)
    const nowMs = core.clock.nowMs()
    const { renamedAtMs } = await presentOf(core, parts)
    const withdrawn: ChangePart[] = []
    for await (const token of everyRow(core.store, 'token', ({ hash }) => hash)) {
      if (!isTokenAt(token, name, renamedAtMs, nowMs)) continue
      const found = await core.store.get('token', token.hash)
      const revoked = found === null ? null : decideRevokeToken({ token: found, by, nowMs })
      if (revoked !== null && !isRefusal(revoked)) withdrawn.push(revoked.change)
    }
    return decideDropName({
      ...{ host: bareName(name), row, why, by, nowMs },
      configured: parts.names.isConfigured(host),
      listensThere: parts.names.listensAt(host),
      extra: mergeParts(withdrawn),
    })
  })

/** What nodes are to have now, and since when the plane has the name in it: what was made before has another one. */
type Present = { readonly revision: number; readonly renamedAtMs: number; readonly profiles: ProfilesByName }

const presentOf = async ({ store }: Core, { urls }: PlaneNamesParts): Promise<Present> => {
  const served = urls()
  const claim = await store.get('name-claim', claimedName(hostOfUrl(served.node)))
  return {
    revision: endpointSet(served).revision,
    renamedAtMs: claim !== null && isOfPlane(claim.value) ? calledSinceMs(claim.value) : 0,
    profiles: await profilesByName(store),
  }
}

type NodeInNeed = NameNeeds['nodes'][number]

const acknowledgedBy = async ({ store }: Core, present: Present, node: Node) => {
  const profile = present.profiles.get(node.profile) ?? null
  const { report, agentVersion } = await store.observation(node.id)
  // What it could not write down is gone after a restart.
  const isWritten = report !== null && report.storage.identity_writable
  const endpointRevision = isWritten ? report.endpoint_set.revision : null
  const why = whyNeeded({ node, profile, endpointRevision }, present.revision)
  return { profile, agentVersion, endpointRevision, why }
}

/** Null: it needs no former name. */
const needOf = async (core: Core, present: Present, node: Node): Promise<NodeInNeed | null> => {
  const { why, ...facts } = await acknowledgedBy(core, present, node)
  if (why === null) return null
  const { recoverable } = await recoverabilityNow(core.store, node, present.profiles, core.clock.nowMs())
  return { facts: { node, ...facts, recoverable }, why }
}

/** It keeps every former name. */
const isInTheWay = async (core: Core, present: Present, node: Node): Promise<boolean> =>
  hasBundleBefore(node, present.renamedAtMs, core.clock.nowMs()) ||
  (await acknowledgedBy(core, present, node)).why !== null

const nodesInNeed = async (core: Core, present: Present): Promise<readonly NodeInNeed[]> => {
  const found: NodeInNeed[] = []
  for await (const node of everyNode(core.store, { limit: pageSize, timers: core.timers })) {
    const need = await needOf(core, present, node)
    if (need !== null) found.push(need)
  }
  return found
}

/** A node that keeps a former name; null: none. */
const firstInTheWay = async (core: Core, present: Present): Promise<NodeId | null> => {
  for await (const node of everyNode(core.store, { limit: pageSize, timers: core.timers })) {
    if (await isInTheWay(core, present, node)) return node.id
  }
  return null
}

/** Of each of these names an unused token that has it, if there is one. */
const tokensAt = async (
  { store, clock, timers }: Core,
  { renamedAtMs }: Present,
  names: readonly string[],
): Promise<ReadonlyMap<string, Token>> => {
  const nowMs = clock.nowMs()
  const found = new Map<string, Token>()
  for await (const token of everyRow(store, 'token', ({ hash }) => hash, { timers })) {
    for (const name of names) if (!found.has(name) && isTokenAt(token, name, renamedAtMs, nowMs)) found.set(name, token)
    if (found.size === names.length) break
  }
  return found
}

const handedOutWith = async (
  { store, clock, timers }: Core,
  { renamedAtMs }: Present,
  claim: ServedClaim,
): Promise<Omit<NameNeeds, 'nodes'>> => {
  const nowMs = clock.nowMs()
  const tokens = await Array.fromAsync(everyRow(store, 'token', ({ hash }) => hash))
  const bundles: Node[] = []
  for await (const node of everyNode(store, { limit: pageSize, timers })) {
    if (hasBundleBefore(node, renamedAtMs, nowMs)) bundles.push(node)
  }
  return {
    tokens: tokens.filter((token) => isTokenAt(token, claim.name, renamedAtMs, nowMs)),
    bundles,
    joinStrings: claim.holder.joinStrings,
  }
}
