// Taking a node's identity away, and the receipt that proves it took effect (ruling 18).

import { releaseAll } from '#domain/allocation-rules.ts'
import { certificateKey } from '#domain/certificate.ts'
import type { Row } from '#domain/change.ts'
import type { Attribution } from '#domain/decision.ts'
import type { EntryBody } from '#domain/journal-entry.ts'
import type { NodeDecided, NodeFacts } from '#domain/node-change.ts'
import type { Node, NodeId, Slot } from '#domain/node.ts'
import { decideQuarantine } from '#domain/quarantine.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import { decideDecommission, decideRevoke, type BanFact } from '#domain/revocation.ts'
import { everySlot, slotsOf } from '#domain/slots.ts'
import type { Cursor, Store } from '#plane/store/store.ts'
import { parseIsoTime, type Clock } from '#platform/clock.ts'
import { commitDecision, type CommitDeps } from './commit-decision.ts'
import { domainSettingsRow } from './domain-settings-row.ts'
import { liveAllocations } from './live-allocations.ts'
import type { CutElsewhere, OpenChannels } from './open-channels.ts'

export type WithdrawDeps = CommitDeps & {
  readonly store: Store
  readonly clock: Clock
  readonly channels: Pick<OpenChannels, 'openSessions' | 'everySession' | 'cutElsewhere' | 'heldOff'>
}

export type Withdrawal =
  | { readonly kind: 'quarantine'; readonly reason: string }
  | { readonly kind: 'revoke'; readonly reason: string }
  | { readonly kind: 'decommission'; readonly force: boolean }

export type Withdrawn = {
  readonly kind: 'withdrawn'
  readonly node: Node
  /** What it had until now, as issuer/serial. */
  readonly certificates: readonly string[]
  /** On all replicas, as far as they have said so. */
  readonly channelsCut: number
  /** Replicas that have not: they hear of it, or lose their lease. */
  readonly unconfirmed: number
  readonly entry: Cursor
}

export const withdrawIdentity = (
  deps: WithdrawDeps,
  id: NodeId,
  withdrawal: Withdrawal,
  by: Attribution,
): Promise<Withdrawn | Refusal> => deps.channels.heldOff(id, () => withdraw(deps, id, withdrawal, by))

const withdraw = async (
  deps: WithdrawDeps,
  id: NodeId,
  withdrawal: Withdrawal,
  by: Attribution,
): Promise<Withdrawn | Refusal> => {
  const open = (): number => deps.channels.openSessions(id).length
  let channelsCut = 0
  // Channels of this replica are cut while the feed is told, so whatever that takes away is what this withdrawal cut.
  const feed: CommitDeps['feed'] = {
    publish(committed) {
      const before = open()
      deps.feed.publish(committed)
      channelsCut = before - open()
    },
  }
  const done = await commitDecision({ store: deps.store, feed }, async () => {
    const node = await deps.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const slots = slotsHeld(node)
    const decided = await decide(deps, withdrawal, slots, { node, by, nowMs: deps.clock.nowMs() })
    if (decided.kind === 'refused') return decided
    return { ...decided, certificates: slots.map(({ issuer, serial }) => certificateKey(issuer, serial)) }
  })
  if (done.kind === 'refused') return done
  const [entry] = done.committed.entries
  if (entry === undefined) throw new Error(`the withdrawal of ${id} was committed without an entry`)
  const cuts = done.committed.writes.some(({ put }) => put === 'denial')
  const elsewhere = cuts ? await deps.channels.cutElsewhere(entry.entry.operation) : nothingCut
  return {
    kind: 'withdrawn',
    node: done.node,
    certificates: done.certificates,
    channelsCut: channelsCut + elsewhere.channels,
    unconfirmed: elsewhere.unconfirmed,
    entry: entry.cursor,
  }
}

/** A node that never had an identity has no channel anywhere. */
const nothingCut: CutElsewhere = { channels: 0, unconfirmed: 0 }

const slotsHeld = (node: Row<Node>): readonly Slot[] => {
  const slots = slotsOf(node.value)
  return slots === null ? [] : everySlot(slots)
}

const decide = async (
  deps: WithdrawDeps,
  withdrawal: Withdrawal,
  slots: readonly Slot[],
  facts: NodeFacts,
): Promise<NodeDecided | Refusal> => {
  const domain = await domainSettingsRow(deps.store)
  const allocations = await liveAllocations(deps.store, facts.node.value.id)
  const alongside = releaseAll({ ...facts, allocations, why: whyOf(withdrawal) })
  switch (withdrawal.kind) {
    case 'quarantine':
      return decideQuarantine({ ...facts, domain, reason: withdrawal.reason, alongside })
    case 'revoke': {
      const known = await keysOf(deps.store, slots, facts.node.value.id)
      return decideRevoke({ ...facts, ...known, domain, reason: withdrawal.reason, alongside })
    }
    case 'decommission': {
      const known = await keysOf(deps.store, slots, facts.node.value.id)
      const { id, drain } = facts.node.value
      // A node in service is not taken away by accident: it is drained first, or its channels are cut on purpose.
      const openSessions = drain === 'drained' ? 0 : (await deps.channels.everySession(id)).length
      const open = { openSessions, allocations: allocations.length }
      return decideDecommission({ ...facts, ...known, ...open, domain, force: withdrawal.force, alongside })
    }
  }
}

/** What the owners of its allocations are told. */
const whyOf = (withdrawal: Withdrawal): string => {
  switch (withdrawal.kind) {
    case 'quarantine':
      return `its node was quarantined: ${withdrawal.reason}`
    case 'revoke':
      return `its node was revoked: ${withdrawal.reason}`
    case 'decommission':
      return 'its node was decommissioned'
  }
}

/** So many of the newest: a node that was revoked had few keys that somebody could still bring back. */
const keysRemembered = 50

/** Every key the node was certified with of late, also those whose slots a quarantine has emptied. */
const keysOf = async (
  store: Store,
  slots: readonly Slot[],
  node: NodeId,
): Promise<{ certificates: readonly Pick<Slot, 'spki' | 'notAfterMs'>[]; bans: readonly BanFact[] }> => {
  const query = { node, after: null, last: keysRemembered, limit: keysRemembered }
  const issued = await Promise.all(
    (['host.enrolled', 'node.renewed', 'node.recovered', 'node.repaired'] as const).map((type) =>
      store.journal.read({ ...query, type }),
    ),
  )
  const certificates = issued.flat().flatMap(({ entry }) => certifiedKey(entry.body))
  const keys = new Set([...slots, ...certificates].map(({ spki }) => spki))
  const bans = await Promise.all([...keys].map(async (spki) => ({ spki, row: await store.get('key-ban', spki) })))
  return { certificates, bans }
}

const certifiedKey = ({ key, not_after: notAfter }: EntryBody): Pick<Slot, 'spki' | 'notAfterMs'>[] => {
  const spki = typeof key === 'string' ? /^SHA256:([0-9a-f]{64})$/.exec(key)?.[1] : undefined
  const notAfterMs = typeof notAfter === 'string' ? parseIsoTime(notAfter) : null
  return spki === undefined || notAfterMs === null ? [] : [{ spki, notAfterMs }]
}
