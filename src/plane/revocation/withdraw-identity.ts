// Taking a node's identity away, and the receipt that proves it took effect (ruling 18).

import { releaseAll } from '#domain/fleet/allocation.ts'
import { certificateKey, epochDenialKey, everySlot, slotsOf, type RevocationReason } from '#domain/core/certificate.ts'
import {
  type Row,
  boundedText,
  type Attribution,
  mergeParts,
  type ChangePart,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import type { EntryBody } from '#domain/core/journal-entry.ts'
import type { Node, NodeId, Slot } from '#domain/core/node.ts'
import { decideQuarantine } from '#domain/revocation/quarantine.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import { receiptOpened, openReceipt } from '#domain/revocation/receipt-rules.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideDecommission, decideRevoke, type BanFact } from '#domain/revocation/revocation.ts'
import { wireguardGivenUp } from '#domain/network/wireguard-part.ts'
import type { Cursor, Store } from '#plane/store/contract/store.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { sortableId } from '#platform/random.ts'
import { commitDecision, type OnlyIf } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import { keySharers, sharersCut } from './key-sharers.ts'
import type { OpenChannels, PeerProofs } from '#plane/core/open-channels.ts'
import { readableNode } from '#plane/core/readable-node.ts'
import type { Receipts } from './receipts.ts'
import { wireguardHeldBy } from '#plane/network/wireguard-part.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { programsOf } from '#plane/core/programs-of-node.ts'
import { liveLeaves, programsEnded, type Program } from '#domain/programs/program.ts'

export type WithdrawParts = {
  readonly channels: Pick<OpenChannels, 'pauseWhile'>
  readonly peers: Pick<PeerProofs, 'peersOf'>
  readonly receipts: Pick<Receipts, 'collect'>
}

export type Withdrawal =
  | { readonly kind: 'quarantine'; readonly reason: string }
  | { readonly kind: 'revoke'; readonly reason: string; readonly reasonCode: RevocationReason }
  | { readonly kind: 'decommission'; readonly force: boolean }

export type Withdrawn = {
  readonly kind: 'withdrawn'
  readonly node: Node
  /** As far as it has come by now. */
  readonly receipt: Receipt
  readonly entry: Cursor
}

export const withdrawIdentity = async (
  core: FlowCore,
  parts: WithdrawParts,
  id: NodeId,
  withdrawal: Withdrawal,
  by: Attribution,
  onlyIf: OnlyIf = () => null,
): Promise<Withdrawn | Refusal> => {
  const done = await parts.channels.pauseWhile(id, () => withdraw(core, parts, id, withdrawal, by, onlyIf))
  if (done.kind === 'refused') return done
  return { ...done, receipt: await parts.receipts.collect(done.receipt) }
}

const withdraw = async (
  core: FlowCore,
  { peers }: WithdrawParts,
  id: NodeId,
  withdrawal: Withdrawal,
  by: Attribution,
  onlyIf: OnlyIf,
): Promise<Withdrawn | Refusal> => {
  const done = await commitDecision(core, async () => {
    const found = await core.store.get('node', id)
    if (found === null) return refuse('NODE_NOT_FOUND', id)
    const no = onlyIf(found.value)
    if (no !== null) return no
    const node = await readableNode(core.store, found)
    const revoked = withdrawal.kind === 'quarantine' ? alreadyRevoked(found.value, node.value) : null
    if (revoked !== null) return revoked
    const facts: NodeFacts = { node, by, nowMs: core.clock.nowMs() }
    const slots = slotsHeld(node)
    const programs = await programsOf(core.store, id)
    const leaves = programs.flatMap(({ value }) => liveLeaves(value, facts.nowMs))
    const receipt = receiptOf(withdrawal, [...slots, ...leaves], facts, {
      id: sortableId(facts.nowMs, core.random),
      peers: peers.peersOf(id),
    })
    const decided = await decide(core.store, withdrawal, slots, facts, { receipt: receiptOpened(receipt), programs })
    return decided.kind === 'refused' ? decided : { ...decided, receipt }
  })
  if (done.kind === 'refused') return done
  const [entry] = done.committed.entries
  if (entry === undefined) throw new Error(`the withdrawal of ${id} was committed without an entry`)
  return { kind: 'withdrawn', node: done.node, receipt: done.receipt, entry: entry.cursor }
}

/** A quarantine can be ended by a release, and the row that cannot be read was a tombstone. */
const alreadyRevoked = ({ id, unreadable }: Node, { membership }: Node): Refusal | null => {
  if (unreadable === undefined || membership.kind !== 'quarantined' || membership.revokedBefore === undefined)
    return null
  const { by } = membership.revokedBefore
  const why = `the row of ${id} in the database cannot be read, and the journal says that ${by} revoked it`
  return refuse('NODE_REVOKED', boundedText(`${why}; for a good row: muster node revoke ${id} --reason REASON`))
}

const receiptOf = (
  withdrawal: Withdrawal,
  slots: readonly Slot[],
  { node, by, nowMs }: NodeFacts,
  opened: { readonly id: string; readonly peers: readonly NodeId[] },
): Receipt =>
  openReceipt({
    ...opened,
    kind: withdrawal.kind,
    node: node.value,
    reason: withdrawal.kind === 'decommission' ? 'decommissioned' : boundedText(withdrawal.reason),
    certificates: slots.map(({ issuer, serial }) => certificateKey(issuer, serial)),
    by,
    nowMs,
  })

const slotsHeld = (node: Row<Node>): readonly Slot[] => {
  const slots = slotsOf(node.value)
  return slots === null ? [] : everySlot(slots)
}

const decide = async (
  store: Store,
  withdrawal: Withdrawal,
  slots: readonly Slot[],
  facts: NodeFacts,
  { receipt, programs }: { readonly receipt: ChangePart; readonly programs: readonly Row<Program>[] },
): Promise<NodeDecided | Refusal> => {
  const domain = await domainSettingsRow(store)
  const allocations = await liveAllocations(store, facts.node.value.id)
  const why = whyOf(withdrawal)
  const reason = withdrawal.kind === 'decommission' ? 'cessation-of-operation' : 'unspecified'
  const toleranceMs = domain.value.clockToleranceMs
  const ended = programsEnded({ ...facts, programs, why: boundedText(why), reason, toleranceMs })
  const extraParts = mergeParts([releaseAll({ ...facts, allocations, why }), receipt, ended])
  // A quarantined node may come back, with the key and the address it had.
  const held = await wireguardHeldBy(store, facts.node.value)
  const forGood = mergeParts([extraParts, wireguardGivenUp(held, 'withdrawn', facts.nowMs)])
  switch (withdrawal.kind) {
    case 'quarantine':
      return decideQuarantine({ ...facts, domain, reason: withdrawal.reason, extraParts })
    case 'revoke': {
      const { reason, reasonCode } = withdrawal
      const known = await knownOf(store, slots, facts, domain.value.clockToleranceMs)
      const all = mergeParts([forGood, known.cut])
      return decideRevoke({ ...facts, ...known, domain, reason, reasonCode, extraParts: all })
    }
    case 'decommission': {
      const known = await knownOf(store, slots, facts, domain.value.clockToleranceMs)
      const lost = { allocations: allocations.length }
      const all = mergeParts([forGood, known.cut])
      return decideDecommission({ ...facts, ...known, ...lost, domain, force: withdrawal.force, extraParts: all })
    }
  }
}

/** The reason for the owners of its allocations, and for the leaves of its programs. */
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

/** The number of its newest keys that are banned: a revoked node had few keys that a copy could still present. */
const keysRemembered = 50

/** Its keys, and what denies its epoch. A ban ends what other nodes have over the same key as well, in the same commit. */
const knownOf = async (store: Store, slots: readonly Slot[], { node, nowMs }: NodeFacts, toleranceMs: number) => {
  const { id, epoch } = node.value
  const known = await keysOf(store, slots, node.value)
  const keys = known.bans.map(({ spki }) => spki)
  const sharers = await keySharers(store, id, keys, nowMs)
  const alsoCut = sharers.nodes.map((other) => other.id)
  const formerDenial = await store.get('denial', epochDenialKey(id, epoch))
  return { ...known, formerDenial, alsoCut, cut: sharersCut(sharers, id, toleranceMs, nowMs) }
}

/** Every key the node was certified with of late, also those whose slots a quarantine has emptied; and its recovery key. */
export const keysOf = async (
  store: Store,
  slots: readonly Slot[],
  { id: node, recovery }: Node,
): Promise<{ certificates: readonly Pick<Slot, 'spki' | 'notAfterMs'>[]; bans: readonly BanFact[] }> => {
  const query = { node, after: null, last: keysRemembered, limit: keysRemembered }
  const issued = await Promise.all(
    (['host.enrolled', 'node.renewed', 'node.recovered', 'node.repaired'] as const).map((type) =>
      store.journal.read({ ...query, type }),
    ),
  )
  const certificates = issued.flat().flatMap(({ entry }) => certifiedKey(entry.body))
  const credential = recovery?.credential
  const recoveryKeys = credential?.kind === 'key' ? [credential] : []
  const keys = new Set([...slots, ...certificates, ...recoveryKeys].map(({ spki }) => spki))
  const bans = await Promise.all([...keys].map(async (spki) => ({ spki, row: await store.get('key-ban', spki) })))
  return { certificates, bans }
}

const certifiedKey = ({ key, not_after: notAfter }: EntryBody): Pick<Slot, 'spki' | 'notAfterMs'>[] => {
  const spki = typeof key === 'string' ? /^SHA256:([0-9a-f]{64})$/.exec(key)?.[1] : undefined
  const notAfterMs = typeof notAfter === 'string' ? parseIsoTime(notAfter) : null
  return spki === undefined || notAfterMs === null ? [] : [{ spki, notAfterMs }]
}
