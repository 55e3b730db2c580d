// What the steps of an order write beside it: revocations for the outbox, the ban of a key, and the entries that say so.

import { entry, readOf, type Attribution, type Change, type ChangePart, type Row } from '#domain/core/change.ts'
import type { EntryBody, EntryDraft } from '#domain/core/journal-entry.ts'
import { everySlot, slotsOf, type SigningOrder } from '#domain/core/certificate.ts'
import type { Node, Slot } from '#domain/core/node.ts'
import { issuerRevocationKey, type IssuerRevocation } from './issuer-revocation.ts'
import { abandon, lastPossibleMs, replace, type Order, type OrderStep } from './order.ts'

/** Of steps that no request asked for. */
export const ordersActor: Attribution = { actor: 'system:orders', source: null, correlation: null }

export type StepFacts = {
  readonly row: Row<Order>
  readonly step: OrderStep
  /** Why something is to be revoked. */
  readonly why: Extract<IssuerRevocation['why'], 'orphan' | 'violation'>
  /** Serials that have a row in the outbox already. */
  readonly spared: ReadonlySet<string>
  readonly by: Attribution
  readonly nowMs: number
}

/** Without an entry where the order goes on, or another change says what became of it. */
export const stepPart = ({ row, step, why, spared, by, nowMs }: StepFacts): Required<ChangePart> => {
  const { order, revoke, bansKey } = step
  const revocations = revoke
    .filter((serial) => !spared.has(serial))
    .map((serial) => waitingRevocation(order, { serial, why, nowMs }))
  return {
    reads: [
      readOf('order', order.id, row),
      ...revocations.map((one) => readOf('issuer-revocation', issuerRevocationKey(one), null)),
    ],
    writes: [
      { put: 'order', value: order },
      ...revocations.map((value) => ({ put: 'issuer-revocation', value }) as const),
      ...(bansKey
        ? [
            {
              put: 'key-ban',
              value: { spki: order.spki, why: 'something may have been signed for it that no node got', atMs: nowMs },
            } as const,
          ]
        : []),
    ],
    entries: entriesOf(order, bansKey, by, nowMs),
  }
}

/** Of a certificate that has come back to a request which does not hold the order any more. */
export const revocationChange = (
  row: Row<Order>,
  about: Pick<IssuerRevocation, 'serial'> & Pick<StepFacts, 'why'>,
  by: Attribution,
  nowMs: number,
): Change => {
  const order = row.value
  const value = waitingRevocation(order, { ...about, nowMs })
  const body = { why: 'it was settled elsewhere', returned_serial: about.serial }
  return {
    reads: [readOf('order', order.id, row), readOf('issuer-revocation', issuerRevocationKey(value), null)],
    writes: [{ put: 'issuer-revocation', value }],
    entries: [orderEntry(order, 'order.lost', by, nowMs, body)],
  }
}

const waitingRevocation = (
  order: Order,
  about: Pick<IssuerRevocation, 'serial' | 'why'> & { readonly nowMs: number },
): IssuerRevocation => ({
  issuer: order.issuer,
  serial: about.serial,
  reason: 'unspecified',
  why: about.why,
  order: order.id,
  receipt: null,
  atMs: about.nowMs,
  untilMs: lastPossibleMs(order),
  state: { kind: 'waiting' },
})

const entriesOf = (order: Order, bansKey: boolean, by: Attribution, nowMs: number): readonly EntryDraft[] => {
  const { state } = order
  if (state.kind !== 'lost' && state.kind !== 'abandoned') return []
  return [orderEntry(order, `order.${state.kind}`, by, nowMs, { why: state.why, key_banned: bansKey })]
}

export const orderEntry = (
  order: Order,
  type: 'order.placed' | 'order.lost' | 'order.abandoned' | 'issuer.violation',
  by: Attribution,
  nowMs: number,
  body: EntryBody,
): EntryDraft => {
  const { subject } = order
  const about = 'node' in subject ? { node: subject.node, epoch: subject.epoch } : {}
  return entry(by, nowMs, type, about, {
    order: order.id,
    ...(subject.kind === 'program' && { output: subject.output }),
    ...(subject.kind === 'worker' && { worker: subject.worker }),
    outside_issuer: order.issuer,
    key: `SHA256:${order.spki}`,
    serials: order.attempts.flatMap(({ serial, fate }) => ('serial' in fate ? fate.serial : (serial ?? []))),
    ...body,
  })
}

export type PlacedFacts = {
  readonly order: Order
  /** The order that it takes the place of, or that ends because of it; null: none is there. */
  readonly former: Row<Order> | null
  /** Of the one that it is for. */
  readonly slots: readonly CertifiedSlot[]
  readonly spared: ReadonlySet<string>
  /** What the decision relied on, and what it binds. */
  readonly intent: Required<Pick<ChangePart, 'reads' | 'writes'>>
  /** The name of the issuer, for people. */
  readonly issuerName: string
  readonly by: Attribution
  readonly nowMs: number
}

/** The first of the two commits. Where its id is that of the former order, which left nothing behind, it takes its row. Else the former order is written first: of one certificate there is one open order, also on the way. */
export const placed = (facts: PlacedFacts): Change => {
  const { order, former, intent, issuerName, by, nowMs } = facts
  const isSameRow = former !== null && former.value.id === order.id
  const ended = former === null ? null : formerPart(former, facts)
  return {
    reads: [...(isSameRow ? [] : [readOf('order', order.id, null)]), ...(ended?.reads ?? []), ...intent.reads],
    writes: [...(isSameRow ? [] : (ended?.writes ?? [])), { put: 'order', value: order }, ...intent.writes],
    entries: [
      orderEntry(order, 'order.placed', by, nowMs, { issuer_name: issuerName, replaces: former?.value.id ?? null }),
      ...(ended?.entries ?? []),
    ],
  }
}

const formerPart = (
  row: Row<Order>,
  { order, slots, spared, by, nowMs }: Pick<PlacedFacts, 'order' | 'slots' | 'spared' | 'by' | 'nowMs'>,
): Required<ChangePart> => {
  const step =
    row.value.spki === order.spki
      ? replace(row.value, order.id, nowMs)
      : abandon(row.value, 'another key was brought', nowMs)
  if (step === null) throw new Error('an order was about to take the place of one that is over')
  return stepPart({ row, step: sparingKey(step, slots), why: 'orphan', spared, by, nowMs })
}

/** A certificate that somebody has. */
export type CertifiedSlot = Pick<Slot, 'spki' | 'issuedAtMs'>

/** The node, program or worker that something was ordered for, as it is now. */
export type Orderer = {
  /** Why it gets nothing more, in words; null: it may still repeat its request. */
  readonly ended: string | null
  readonly slots: readonly CertifiedSlot[]
}

export const ordererOf = (node: Node): Orderer => {
  const slots = slotsOf(node)
  return {
    ended: node.membership.kind === 'revoked' ? 'its node was revoked' : null,
    slots: slots === null ? [] : everySlot(slots),
  }
}

/** The key of a certificate that is in use is not banned: another issuer may have signed for it meanwhile. */
export const sparingKey = (step: OrderStep, slots: readonly CertifiedSlot[]): OrderStep =>
  step.bansKey && slots.some(({ spki }) => spki === step.order.spki) ? { ...step, bansKey: false } : step

/** Why a lost order is not waited for any longer; null: its request may still be repeated. `orderer`: null where there is none. */
export const abandonedBecause = (
  order: Order,
  orderer: Orderer | null,
  nowMs: number,
  toleranceMs: number,
): string | null => {
  if (order.state.kind !== 'lost') return null
  if (nowMs >= lastPossibleMs(order) + toleranceMs) return 'its time is over'
  if (orderer === null) return null
  const isLater = orderer.slots.some(({ issuedAtMs }) => issuedAtMs > order.issuedAtMs)
  return orderer.ended ?? (isLater ? `its ${order.subject.kind} has another certificate` : null)
}

/** The same request is answered with a certificate of another issuer: what was ordered for its key before ends with that. */
export const orderEnded = (
  row: Row<Order>,
  {
    id,
    spki,
    by,
    nowMs,
  }: { readonly id: string; readonly spki: string; readonly by: Attribution; readonly nowMs: number },
): Required<ChangePart> => {
  // What was ordered for another key is abandoned by the leader.
  const step = row.value.spki === spki ? replace(row.value, id, nowMs) : null
  return step === null
    ? { reads: [], writes: [], entries: [] }
    : stepPart({ row, step, why: 'orphan', spared: new Set(), by, nowMs })
}

/** Whether what was signed for the one is what the other orders: everything but when, and under which id. */
export const isSameOrder = (one: SigningOrder, other: SigningOrder): boolean => wordsOf(one) === wordsOf(other)

const wordsOf = ({ id: _id, issuedAtMs: _at, publicKey, ...order }: SigningOrder): string =>
  JSON.stringify({ ...order, publicKey: Buffer.from(publicKey).toString('base64') })
