// One public key belongs to one node, as a TLS key, a recovery key or the key of one of its programs. A key claim is written in the commit that certifies or
// registers a key, and compared there: of two nodes that bring one key at the same time, one loses the race and is refused.

import { type KeyBan, everySlot, slotsOf } from '#domain/core/certificate.ts'
import { readOf, type Read, type Row, type Write } from '#domain/core/change.ts'
import type { Node, NodeId, Recovery } from '#domain/core/node.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Order } from '#domain/issuers/order.ts'

export type KeyOwner = {
  readonly node: NodeId
  readonly use: 'tls' | 'recovery' | 'program'
  readonly sinceMs: number
}

/**
 * Never removed: a key that a node had years ago is still not another node's key. Several nodes only where a release
 * before 0.2.1 certified one key for all of them.
 */
export type KeyClaim = { readonly spki: string; readonly holders: readonly KeyOwner[] }

/** What the store knows of the keys in a request. */
export type KeyClaimFacts = {
  /** Of the key that is to be certified. */
  readonly certified: Row<KeyClaim> | null
  /** Of the recovery key that is to be registered. */
  readonly registered: Row<KeyClaim> | null
  readonly registeredBan: Row<KeyBan> | null
  /** The order to an outside issuer that is open for this node, where its key is claimed; null: none is. */
  readonly ordered: Row<Order> | null
}

export const noKeyClaims: KeyClaimFacts = { certified: null, registered: null, registeredBan: null, ordered: null }

export const isShared = ({ holders }: KeyClaim): boolean => new Set(holders.map(({ node }) => node)).size > 1

export const otherOwners = (claim: Row<KeyClaim> | null, node: NodeId): readonly NodeId[] => [
  ...new Set((claim?.value.holders ?? []).map((holder) => holder.node).filter((id) => id !== node)),
]

export type KeyInUseFacts = {
  readonly nodeId: NodeId
  /** Null: it is about to be registered. */
  readonly node: Node | null
  readonly spki: string
  /** What this request would register; null: nothing. */
  readonly register: RecoveryRegistrationFacts | null
  readonly claims: KeyClaimFacts
}

/**
 * A node's own keys are refused as well: a new certificate needs a new key. The exception is a key whose certificate was
 * never used: its answer was lost, and the same request is repeated after that certificate has expired (ruling 4). So is a key that
 * an outside issuer has been asked to sign for.
 */
export const keyInUse = ({ nodeId, node, spki, register, claims }: KeyInUseFacts): Refusal | null => {
  if (otherOwners(claims.certified, nodeId).length > 0) return refuse('KEY_IN_USE', fingerprint(spki))
  const known = (claims.certified?.value.holders ?? []).length > 0 || (node !== null && heldKeys(node).includes(spki))
  const isRepeated = spki === claims.ordered?.value.spki || (node !== null && isUnanswered(node, spki))
  if (known && !isRepeated) {
    return refuse('KEY_IN_USE', `${fingerprint(spki)} is an earlier key of this node`)
  }
  if (register?.kind !== 'key') return null
  if (claims.registeredBan !== null) return refuse('KEY_BLOCKED', `the recovery key ${fingerprint(register.spki)}`)
  const taken = (claims.registered?.value.holders ?? []).some(
    (holder) => holder.node !== nodeId || holder.use !== 'recovery',
  )
  const certified = node !== null && certifiedKeys(node).includes(register.spki)
  return taken || certified ? refuse('KEY_IN_USE', `the recovery key ${fingerprint(register.spki)}`) : null
}

const fingerprint = (spki: string): string => `SHA256:${spki}`

const certifiedKeys = (node: Node): readonly string[] => {
  const slots = slotsOf(node)
  return slots === null ? [] : everySlot(slots).map((slot) => slot.spki)
}

/** Every key the node's own row names, each with its use. */
export const holdingsOf = (node: Node): readonly (KeyOwner & { readonly spki: string })[] => {
  const slots = slotsOf(node)
  const certified = (slots === null ? [] : everySlot(slots)).map(({ spki, issuedAtMs }) => ({
    ...{ spki, node: node.id, use: 'tls' as const, sinceMs: issuedAtMs },
  }))
  const credential = node.recovery?.credential
  if (credential?.kind !== 'key') return certified
  const { spki, former, registeredAtMs } = credential
  const recovery = [spki, ...(former === undefined ? [] : [former.spki])].map((one) => ({
    ...{ spki: one, node: node.id, use: 'recovery' as const, sinceMs: registeredAtMs },
  }))
  return [...certified, ...recovery]
}

const heldKeys = (node: Node): readonly string[] => holdingsOf(node).map(({ spki }) => spki)

const isUnanswered = (node: Node, spki: string): boolean => {
  const slots = slotsOf(node)
  if (slots === null) return false
  return slots.pending?.spki === spki || (node.membership.kind === 'enrolled' && slots.current.spki === spki)
}

/** `recovery`: what the node has after this change; its key is claimed where this request registers it. */
export const keysClaimed = (
  facts: KeyInUseFacts & { readonly recovery: Recovery | null; readonly nowMs: number },
): { readonly reads: readonly Read[]; readonly writes: readonly Write[] } => {
  const { nodeId, spki, register, claims, recovery, nowMs } = facts
  const certified = certifiedKeyClaimed({ nodeId, spki, claims, nowMs })
  const registers =
    register?.kind === 'key' && recovery?.credential.kind === 'key' && recovery.credential.spki === register.spki
  if (!registers) return certified
  const registered = claimed(register.spki, claims.registered, { node: nodeId, use: 'recovery', sinceMs: nowMs })
  return {
    reads: [...certified.reads, ...registered.reads, readOf('key-ban', register.spki, null)],
    writes: [...certified.writes, ...registered.writes],
  }
}

/** In the commit before an outside issuer is asked: from then on no other node gets a certificate for this key. */
export const certifiedKeyClaimed = ({
  nodeId,
  spki,
  claims,
  nowMs,
}: Pick<KeyInUseFacts, 'nodeId' | 'spki' | 'claims'> & { readonly nowMs: number }) =>
  claimed(spki, claims.certified, { node: nodeId, use: 'tls', sinceMs: nowMs })

const claimed = (spki: string, row: Row<KeyClaim> | null, holder: KeyOwner) => {
  const value = withOwner(row?.value ?? { spki, holders: [] }, holder)
  const writes: readonly Write[] = value === row?.value ? [] : [{ put: 'key-claim', value }]
  return { reads: [readOf('key-claim', spki, row)], writes }
}

/** The same claim where it names the holder already. */
export const withOwner = (claim: KeyClaim, { node, use, sinceMs }: KeyOwner): KeyClaim =>
  claim.holders.some((one) => one.node === node && one.use === use)
    ? claim
    : { ...claim, holders: [...claim.holders, { node, use, sinceMs }] }
