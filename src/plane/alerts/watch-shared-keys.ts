// Keys that several nodes hold: releases before 0.2.1 certified one key for any number of nodes. They go on working, and an
// alert for each key names them until all but one have a new key. The leader looks through the nodes when it begins and
// every hour, because a replica of an older release writes certificates without claims.

import { readOf, type Change, type Row, type Write } from '#domain/core/change.ts'
import { entry } from '#domain/core/decision.ts'
import { holdingsOf, withHolder, type KeyClaim } from '#domain/identity/key-claim.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { everySlot, slotsOf } from '#domain/core/slots.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Timers } from '#platform/timers.ts'
import { deniedOverKey } from '#plane/revocation/key-sharers.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { settleAlert, type SettleDeps } from './settle-alert.ts'
import type { StandingAlerts } from './standing-alerts.ts'

export type WatchKeysDeps = SettleDeps & {
  readonly store: Pick<Store, 'get' | 'list' | 'nodes' | 'commit'>
  readonly timers: Timers
  readonly standing: StandingAlerts
}

const by = { actor: 'system:keys', source: null, correlation: null }
const pageSize = 100

/** Claims every key that a node's row names, and denies certificates over keys that are banned. Safe to repeat. */
export const claimKnownKeys = async (deps: WatchKeysDeps, isOver: () => boolean): Promise<void> => {
  for (let after: NodeId | null = null; !isOver();) {
    const page = await deps.store.nodes({ membership: null, profile: null, after, limit: pageSize })
    const nodes = page.map(({ value }) => value)
    // A lost race is left for the next look: somebody has just written one of these claims.
    for (const change of [await missingClaims(deps, nodes), await bannedCertificates(deps, nodes)]) {
      if (change !== null) await commitOnce(deps, change)
    }
    after = nodes.at(-1)?.id ?? null
    if (page.length < pageSize || after === null) return
    await new Promise<void>((resolve) => deps.timers.soon(resolve))
  }
}

const missingClaims = async ({ store, clock }: WatchKeysDeps, nodes: readonly Node[]): Promise<Change | null> => {
  const byKey = Map.groupBy(nodes.flatMap(holdingsOf), ({ spki }) => spki)
  const looked = await Promise.all(
    [...byKey].map(async ([spki, holders]) => {
      const row = await store.get('key-claim', spki)
      const empty: KeyClaim = { spki, holders: [] }
      return { spki, row, value: holders.reduce(withHolder, row?.value ?? empty) }
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

/** Of a node that is not revoked itself: a release before 0.2.1 banned the key of another and left these. */
const bannedCertificates = async ({ store, clock }: WatchKeysDeps, nodes: readonly Node[]): Promise<Change | null> => {
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

/** Raises and resolves the alerts. One about an attempt is resolved once an operator has acknowledged it. */
export const watchSharedKeys = async (deps: WatchKeysDeps): Promise<void> => {
  const shared = new Set<string>()
  for (let after: string | null = null; ;) {
    const page: readonly Row<KeyClaim>[] = await deps.store.list('key-claim', {
      where: { shared: 1 },
      after,
      limit: pageSize,
    })
    for (const { value } of page) {
      const nodes = await usersOf(deps.store, value)
      if (nodes.length < 2) continue
      shared.add(value.spki)
      await settleAlert(deps, async () => {
        const about = { kind: 'shared_key', subject: value.spki, node: nodes[0] ?? null } as const
        return {
          about,
          wanted: { ...about, severity: 'critical', reason: reasonOf(nodes), sinceMs: null },
          reliedOn: [],
        }
      })
    }
    after = page.at(-1)?.value.spki ?? null
    if (page.length < pageSize || after === null) break
  }
  for (const alert of [...deps.standing.all()]) {
    const over =
      (alert.kind === 'shared_key' && !shared.has(alert.subject)) ||
      (alert.kind === 'copied_image' && alert.state.kind === 'acknowledged')
    if (over) await settleAlert(deps, async () => ({ about: alert, wanted: null, reliedOn: [] }))
  }
}

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

const mostNamed = 8

const reasonOf = (nodes: readonly NodeId[]): string => {
  const more = nodes.length - mostNamed
  const named = nodes.slice(0, mostNamed).join(', ')
  return `copied image: one private key is on ${named}${more > 0 ? ` and ${more} more` : ''}`
}
