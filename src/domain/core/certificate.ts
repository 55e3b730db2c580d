// A certificate from its order to its end: what is signed, the row that is kept of it, the slot it has in its node, and what
// denies it or bans its key.

import type { IssuerId, Node, NodeId, Slot, Slots } from './node.ts'

declare const decided: unique symbol

/**
 * One certificate to be signed. An issuer accepts nothing else, and only a decision makes one: a boundary rule keeps
 * `placeOrder` inside src/domain.
 */
export type SigningOrder = {
  readonly id: string
  readonly subject: { readonly cn: string; readonly o: string; readonly ou: string }
  readonly uriSans: readonly string[]
  readonly dnsSans: readonly string[]
  readonly ipSans: readonly string[]
  readonly usage: 'client' | 'server' | 'both'
  /** SubjectPublicKeyInfo, DER. The only thing a request contributes. */
  readonly publicKey: Uint8Array
  readonly issuedAtMs: number
  readonly lifetimeMs: number
  readonly aiaUrl: string | null
  readonly cdpUrl: string | null
  readonly for: CertificateSubject
  readonly [decided]: true
}

export type OrderDraft = Omit<SigningOrder, typeof decided>

export const placeOrder = (draft: OrderDraft): SigningOrder => draft as SigningOrder

/** `program`: it authenticates to nothing on the plane (ruling 19). */
export type CertificateSubject =
  | { readonly kind: 'node'; readonly node: NodeId; readonly epoch: number }
  | { readonly kind: 'program'; readonly node: NodeId; readonly epoch: number; readonly output: string }
  /** Under the authority of workers, and never under that of nodes. */
  | { readonly kind: 'worker'; readonly worker: string }
  | { readonly kind: 'server' }

/** The row of every certificate that we issued. A presented certificate is resolved to it (ruling 9). */
export type CertificateRow = {
  readonly issuer: IssuerId
  /** Hex, lower case, no leading zeros. */
  readonly serial: string
  readonly subject: CertificateSubject
  readonly spki: string
  readonly sha256: string
  readonly issuedAtMs: number
  readonly notAfterMs: number
  /** The certificate itself, DER, base64: a repeated request gets these very bytes. */
  readonly der: string
  /** The order it answers. */
  readonly order: string
  /** The serial of the certificate that asked for this one, at a renewal. */
  readonly renews: string | null
}

/** A certificate as signed; the decision that ordered it adds the rest. */
export type IssuedCertificate = Omit<CertificateRow, 'subject' | 'renews'>

export const certificateKey = (issuer: IssuerId, serial: string): string => `${issuer}/${serial}`

/**
 * What certificates are found by in a store: those of a node by its id, those of its programs apart from them. There can be many more of
 * these, and a reader of the certificates of a node means the others.
 */
export const certificateHolder = (subject: CertificateSubject): string | null => {
  switch (subject.kind) {
    case 'node':
      return subject.node
    case 'program':
      return programsHolder(subject.node)
    case 'worker':
      return `worker:${subject.worker}`
    case 'server':
      return null
  }
}

/** No id of a node has a colon. */
export const programsHolder = (node: NodeId): string => `programs:${node}`

export const slotOf = (row: CertificateRow): Slot => ({
  issuer: row.issuer,
  serial: row.serial,
  spki: row.spki,
  sha256: row.sha256,
  issuedAtMs: row.issuedAtMs,
  notAfterMs: row.notAfterMs,
})

/** The reasons an operator can give for a revocation as verifiers get it (RFC 5280, 5.3.1). */
export const revocationReasons = ['unspecified', 'key-compromise', 'superseded', 'cessation-of-operation'] as const
export type RevocationReason = (typeof revocationReasons)[number]

export type DenialReason = RevocationReason | 'ca-compromise'

/**
 * An entry of the deny-list: one certificate, a whole epoch, or all that an authority has signed. It lives until nothing it
 * denies could still be valid.
 */
export type Denial = (
  | { readonly kind: 'epoch'; readonly node: NodeId; readonly epoch: number }
  | { readonly kind: 'certificate'; readonly issuer: IssuerId; readonly serial: string }
  | { readonly kind: 'issuer'; readonly issuer: IssuerId }
) & {
  /** Since when; 0: from before that was written down. */
  readonly atMs: number
  readonly untilMs: number
  readonly why: string
  readonly reason: DenialReason
}

export const denialKey = (denial: Denial): string => {
  switch (denial.kind) {
    case 'epoch':
      return epochDenialKey(denial.node, denial.epoch)
    case 'certificate':
      return certificateDenialKey(denial.issuer, denial.serial)
    case 'issuer':
      return issuerDenialKey(denial.issuer)
  }
}

export const epochDenialKey = (node: NodeId, epoch: number): string => `epoch/${epoch}/${node}`
export const certificateDenialKey = (issuer: IssuerId, serial: string): string => `certificate/${issuer}/${serial}`
export const issuerDenialKey = (issuer: IssuerId): string => `issuer/${issuer}`

/** A public key that may never be certified again. Bans never expire. */
export type KeyBan = { readonly spki: string; readonly why: string; readonly atMs: number }

/** What cuts off a certificate whose key is banned. */
export const deniedOverKey = (
  { issuer, serial, notAfterMs }: Pick<CertificateRow, 'issuer' | 'serial' | 'notAfterMs'>,
  why: string,
  toleranceMs: number,
  atMs: number,
) =>
  ({
    put: 'denial',
    value: {
      kind: 'certificate',
      issuer,
      serial,
      atMs,
      untilMs: notAfterMs + toleranceMs,
      why,
      reason: 'key-compromise',
    },
  }) as const

// Which of a node's certificates is which, and what becomes of them.

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

// What was made in the future was made by a clock that was wrong: it does not hold yet, and was meant to end long before it
// does. Clocks of machines that work together differ a little, so a tolerance belongs to every such comparison.

/** Certificates are backdated by so much, and so far apart two replicas may be. */
const leastMs = 60_000

/** Where the setting of the domain is not at hand. */
const usualClockToleranceMs = 5 * 60_000

export const isFromFuture = (madeAtMs: number, nowMs: number, toleranceMs = usualClockToleranceMs): boolean =>
  madeAtMs - nowMs > Math.max(toleranceMs, leastMs)

/** Whether what the node lives by was signed by one of these. */
export const livesBy = (node: Node, issuers: readonly IssuerId[]): boolean => {
  const slots = slotsOf(node)
  return slots !== null && issuers.includes(slots.current.issuer)
}
