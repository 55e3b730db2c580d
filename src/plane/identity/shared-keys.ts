// Keys that several nodes hold: releases before 0.2.1 certified one key for any number of nodes. They go on working, and an
// alert for each key names them until all but one have a new key. The leader looks through the nodes when it begins and
// every hour, because a replica of an older release writes certificates without claims.

import { wantedAlert, type WantedAlert } from '#domain/alerts/alert-kinds.ts'
import { deniedOverKey, everySlot, slotsOf, type KeyBan } from '#domain/core/certificate.ts'
import { readOf, type Change, type Write, entry } from '#domain/core/change.ts'
import { holdingsOf, withOwner, type KeyClaim } from '#domain/identity/key-claim.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Led } from '#plane/cluster/leading.ts'
import { everyRow, nodePages } from '#plane/core/pages.ts'
import { startUpkeep } from '#plane/core/upkeep.ts'
import { reconcileSource, type AlertSource, type UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { Core } from '#plane/core/core.ts'

const by = { actor: 'system:keys', source: null, correlation: null }
const pageSize = 100

/** Claims every key that a node's row names, and repairs what releases before 0.2.1 left of banned keys. Safe to repeat. */
const claimKnownKeys = async (core: Core, isOver: () => boolean): Promise<void> => {
  for await (const page of nodePages(core.store, { limit: pageSize, timers: core.timers })) {
    if (isOver()) return
    const nodes = page.map(({ value }) => value)
    // A lost race is left for the next look: another commit has just written one of these claims.
    for (const missing of [missingClaims, recoveryKeysOfRevoked, bannedCertificates]) {
      const change = await missing(core, nodes)
      if (change !== null) await commitOnce(core, change)
    }
  }
}

const missingClaims = async ({ store, clock }: Core, nodes: readonly Node[]): Promise<Change | null> => {
  // The schema of the release before has no place for them; the step to the next one makes them.
  if (store.unfinishedUpgrade() !== null) return null
  const byKey = Map.groupBy(nodes.flatMap(holdingsOf), ({ spki }) => spki)
  const looked = await Promise.all(
    [...byKey].map(async ([spki, holders]) => {
      const row = await store.get('key-claim', spki)
      const empty: KeyClaim = { spki, holders: [] }
      return { spki, row, value: holders.reduce(withOwner, row?.value ?? empty) }
    }),
  )
  const missing = looked.filter(({ row, value }) => value !== row?.value)
  if (missing.length === 0) return null
  return {
    reads: missing.map(({ spki, row }) => readOf('key-claim', spki, row)),
    writes: missing.map(({ value }) => ({ put: 'key-claim', value })),
    entries: [entry(by, clock.nowMs(), 'keys.claimed', {}, { keys: missing.length })],
  }
}

/** A release before 0.2.1 banned no recovery key with a node: its holder could recover as another node that has the same one. */
const recoveryKeysOfRevoked = async ({ store, clock }: Core, nodes: readonly Node[]): Promise<Change | null> => {
  const nowMs = clock.nowMs()
  const bans = new Map<string, KeyBan>()
  for (const { membership, recovery, unreadable } of nodes) {
    if (membership.kind !== 'revoked' || unreadable !== undefined || recovery?.credential.kind !== 'key') continue
    const { spki } = recovery.credential
    if ((await store.get('key-ban', spki)) === null) bans.set(spki, { spki, why: membership.reason, atMs: nowMs })
  }
  if (bans.size === 0) return null
  return {
    reads: [...bans.keys()].map((spki) => readOf('key-ban', spki, null)),
    writes: [...bans.values()].map((value) => ({ put: 'key-ban', value })),
    entries: [entry(by, nowMs, 'keys.claimed', {}, { banned: bans.size })],
  }
}

/** Of a node that is not revoked itself: a release before 0.2.1 banned the key of another and left these. */
const bannedCertificates = async ({ store, clock }: Core, nodes: readonly Node[]): Promise<Change | null> => {
  const domain = await store.get('domain', 'domain')
  if (domain === null) return null
  const nowMs = clock.nowMs()
  const writes: Write[] = []
  for (const node of nodes) {
    const slots = slotsOf(node)
    for (const slot of slots === null ? [] : everySlot(slots)) {
      if ((await store.get('key-ban', slot.spki)) === null) continue
      const denied = deniedOverKey(slot, 'its key is banned', domain.value.clockToleranceMs, nowMs)
      if ((await store.get('denial', `certificate/${slot.issuer}/${slot.serial}`)) === null) writes.push(denied)
    }
  }
  if (writes.length === 0) return null
  return {
    reads: [readOf('domain', 'domain', domain)],
    writes,
    entries: [entry(by, nowMs, 'keys.claimed', {}, { denied: writes.length })],
  }
}

/** Every key that several nodes hold. That one brought the key of another is raised where it is refused (copied-images.ts). */
const sharedKeysSource = (store: Pick<Store, 'get' | 'list'>): AlertSource => ({
  kinds: ['shared_key', 'copied_image'],
  async wanted() {
    const shared: WantedAlert[] = []
    for await (const claim of everyRow(store, 'key-claim', ({ spki }) => spki, {
      where: { shared: 1 },
      limit: pageSize,
    })) {
      const nodes = await usersOf(store, claim)
      if (nodes.length >= 2) shared.push(wantedAlert('shared_key', claim.spki, { nodes }, { node: nodes[0] ?? null }))
    }
    return shared
  },
})

/** The nodes that still have it; one that was revoked or got a new key has not. */
const usersOf = async (store: Pick<Store, 'get'>, { spki, holders }: KeyClaim): Promise<readonly NodeId[]> => {
  const ids = [...new Set(holders.map(({ node }) => node))].toSorted()
  const users: NodeId[] = []
  for (const id of ids) {
    const node = (await store.get('node', id))?.value
    if (node === undefined || node.membership.kind === 'revoked') continue
    if (holdingsOf(node).some((held) => held.spki === spki)) users.push(id)
  }
  return users
}

const reconcileEveryMs = 60_000
const claimEveryMs = 3600_000

/** For as long as this replica leads. */
export const leadSharedKeys = (core: Core, alerts: Pick<UnresolvedAlerts, 'all'>): Led => {
  let stopped = false
  const reconcile = (): Promise<void> => reconcileSource(core, alerts, sharedKeysSource(core.store))
  const claim = async (): Promise<void> => {
    await claimKnownKeys(core, () => stopped)
    if (!stopped) await reconcile()
  }
  const claimNow = (): Promise<void> =>
    claim().catch((error: unknown) =>
      core.log.error({ err: error }, 'not every node could be looked at for shared keys'),
    )
  let first = claimNow()
  core.store.onUpgraded(() => {
    if (!stopped) first = first.then(claimNow)
  })
  const endUpkeep = startUpkeep(core, [
    { name: 'shared keys', where: 'leader', everyMs: reconcileEveryMs, run: reconcile },
    { name: 'key claims', where: 'leader', everyMs: claimEveryMs, run: claim },
  ])
  return {
    async stop() {
      endUpkeep()
      stopped = true
      await first
    },
  }
}
