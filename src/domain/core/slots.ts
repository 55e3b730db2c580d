// Which of a node's certificates is which, and what becomes of them.

import type { Denial } from './certificate.ts'
import { isFromFuture } from './clock-tolerance.ts'
import type { IssuerId, Node, Slot, Slots } from './node.ts'

export type SlotName = 'current' | 'pending' | 'retired'

/** Null for the states that have no certificates. */
export const slotsOf = (node: Node): Slots | null => {
  switch (node.membership.kind) {
    case 'enrolled':
    case 'active':
    case 'inactive':
    case 'quarantined':
      return node.membership.slots
    case 'registered':
    case 'revoked':
      return null
  }
}

export const everySlot = (slots: Slots): readonly Slot[] =>
  [slots.current, slots.pending, slots.retired === null ? null : slots.retired.slot].filter((slot) => slot !== null)

export const slotNameOf = (slots: Slots, issuer: IssuerId, serial: string): SlotName | null => {
  const is = (slot: Slot | null): boolean => slot !== null && slot.issuer === issuer && slot.serial === serial
  if (is(slots.current)) return 'current'
  if (is(slots.pending)) return 'pending'
  return is(slots.retired === null ? null : slots.retired.slot) ? 'retired' : null
}

/** Of two certificates of a node the later one has the higher number; 0: none of these. */
export const generationOf = ({ current, pending, retired }: Slots, serial: string | null): number =>
  [retired === null ? null : retired.slot, current, pending].findIndex((slot) => slot?.serial === serial) + 1

/** Until when this certificate may be used; null when it is none of these any more. */
export const servesUntilMs = (slots: Slots, issuer: IssuerId, serial: string): number | null => {
  switch (slotNameOf(slots, issuer, serial)) {
    case 'current':
      return slots.current.notAfterMs
    case 'pending':
      return slots.pending === null ? null : slots.pending.notAfterMs
    case 'retired':
      return slots.retired === null ? null : slots.retired.untilMs
    case null:
      return null
  }
}

/** The slot that was signed for this key and is still good: what a repeated request is answered with. */
export const slotForKey = (slots: Slots, spki: string, nowMs: number): Slot | null =>
  [slots.current, slots.pending].find(
    (slot) => slot !== null && slot.spki === spki && slot.notAfterMs > nowMs && !isFromFuture(slot.issuedAtMs, nowMs),
  ) ?? null

/** The pending certificate has been used: it is the current one now, and the one before drains until a deadline. */
export const promote = (slots: Slots, pending: Slot, drainUntilMs: number): Slots => ({
  current: pending,
  pending: null,
  retired: { slot: slots.current, untilMs: Math.min(drainUntilMs, slots.current.notAfterMs) },
})

/** Denies the node's epoch for as long as anything issued in it could still be valid. Null: nothing was. */
export const denialOfEpoch = (
  node: Node,
  { toleranceMs, ...story }: { readonly toleranceMs: number } & Pick<Denial, 'atMs' | 'why' | 'reason'>,
): Denial | null => {
  const slots = slotsOf(node)
  if (slots === null) return null
  const lastMs = Math.max(...everySlot(slots).map((slot) => slot.notAfterMs))
  return { kind: 'epoch', node: node.id, epoch: node.epoch, untilMs: lastMs + toleranceMs, ...story }
}
