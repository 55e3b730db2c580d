// An order to an outside issuer, from its intent to its end. A signature there and a commit here are not one step, so the intent
// is durable before anything is sent, and each attempt keeps what is needed to revoke what it may have caused
// (docs/decisions/issuers.md). Each function is one step: the caller commits what it returns, against the version that it read.

import { certificateHolder, type CertificateSubject } from '#domain/core/certificate.ts'

export type Order = {
  readonly id: string
  /** The id of the outside issuer. Its name can be given to another one. */
  readonly issuer: string
  readonly subject: CertificateSubject
  /** The hash of the public key. */
  readonly spki: string
  /** The node's request, DER, base64: outside issuers verify possession themselves. */
  readonly request: string
  readonly issuedAtMs: number
  readonly lifetimeMs: number
  /** The hash of the token that it bound; null: none. */
  readonly token: string | null
  /** Oldest first. Only the last one can be open. */
  readonly attempts: readonly Attempt[]
  readonly state: OrderState
}

export type OrderState =
  /** The replica of this number may ask the issuer, and no other. Within a replica: the request that placed it. */
  | { readonly kind: 'intended'; readonly holder: number; readonly sinceMs: number }
  | { readonly kind: 'issued'; readonly serial: string; readonly atMs: number }
  /** Nobody holds it. Its attempts are settled, and the node may repeat its request. */
  | { readonly kind: 'lost'; readonly why: string; readonly sinceMs: number }
  | { readonly kind: 'replaced'; readonly by: string; readonly atMs: number }
  | { readonly kind: 'abandoned'; readonly why: string; readonly atMs: number }

export type Attempt = {
  /** Null: the issuer chooses it. */
  readonly serial: string | null
  readonly atMs: number
  readonly fate: Fate
}

export type Fate =
  | { readonly kind: 'open' }
  /** The issuer has said so. */
  | { readonly kind: 'unsigned'; readonly why: string }
  /** Signed, or perhaps signed, under this serial; it is to be revoked. */
  | { readonly kind: 'orphan'; readonly serial: string }
  /** Perhaps signed, under a serial that is not known. */
  | { readonly kind: 'may-exist'; readonly untilMs: number }
  | { readonly kind: 'kept'; readonly serial: string }

/** What is written with the step. */
export type OrderStep = {
  readonly order: Order
  /** Serials for the outbox of revocations. */
  readonly revoke: readonly string[]
  /** Something that nobody is to use may exist under this key. */
  readonly bansKey: boolean
}

const step = (order: Order, revoke: readonly string[] = [], bansKey = false): OrderStep => ({ order, revoke, bansKey })

/** In one order: a connection that had died may be all that was wrong. The caller then gives up, and the node repeats its request. */
export const mostAttempts = 2

export type Intent = Omit<Order, 'attempts' | 'state'> & {
  readonly holder: number
  readonly serial: string | null
  readonly nowMs: number
}

/**
 * The next order of the same certificate takes the row of this one: an issuer that refuses on and on leaves one row, and not one for each
 * time that a node asks.
 */
export const isTakenOver = (former: Order, issuer: string): boolean =>
  former.state.kind === 'lost' && isUnsigned(former) && former.issuer === issuer

export const intend = ({ holder, serial, nowMs, ...order }: Intent): Order => ({
  ...order,
  attempts: [openAttempt(serial, nowMs)],
  state: { kind: 'intended', holder, sinceMs: nowMs },
})

const openAttempt = (serial: string | null, atMs: number): Attempt => ({ serial, atMs, fate: { kind: 'open' } })

/** Null: this replica does not hold it. Whoever has taken it over goes on with it. */
const held = (order: Order, holder: number): Order | null =>
  order.state.kind === 'intended' && order.state.holder === holder ? order : null

type ByHolder = { readonly holder: number; readonly nowMs: number }

/**
 * Asks once more, under another serial: one serial is sent once. Null: not held here, or tried often enough.
 * An attempt of which no byte was sent needs no step; its serial is still unused.
 */
export const tryAgain = (
  order: Order,
  { holder, nowMs, serial }: ByHolder & Pick<Attempt, 'serial'>,
): OrderStep | null => {
  if (held(order, holder) === null || order.attempts.length >= mostAttempts) return null
  if (serial !== null && order.attempts.some((one) => one.serial === serial))
    throw new Error('a serial was about to be sent to an issuer for the second time')
  const { attempts, revoke } = settled(order, null)
  return step({ ...order, attempts: [...attempts, openAttempt(serial, nowMs)] }, revoke)
}

/** The certificate is kept, in the same commit. Null: another replica has taken the order over; see `decline`. */
export const complete = (
  order: Order,
  { holder, nowMs, serial }: ByHolder & { readonly serial: string },
): OrderStep | null => {
  const last = order.attempts.at(-1)
  if (held(order, holder) === null || last?.fate.kind !== 'open') return null
  if (last.serial !== null && last.serial !== serial)
    throw new Error('a certificate with another serial was about to be kept')
  const attempts = [...order.attempts.slice(0, -1), { ...last, fate: { kind: 'kept', serial } as const }]
  return step({ ...order, attempts, state: { kind: 'issued', serial, atMs: nowMs } })
}

/** It was not signed: the issuer has said so, or was not reached. The node may repeat its request, with the same key. */
export const refusedThere = (
  order: Order,
  { holder, nowMs, why }: ByHolder & { readonly why: string },
): OrderStep | null => {
  if (held(order, holder) === null) return null
  const attempts = order.attempts.map((one) =>
    one.fate.kind === 'open' ? { ...one, fate: { kind: 'unsigned', why } as const } : one,
  )
  return step({ ...order, attempts, state: { kind: 'lost', why, sinceMs: nowMs } })
}

/** What came back is not to be kept: not what was ordered, or its node may not have it any more. The node may repeat. */
export const decline = (
  order: Order,
  { holder, nowMs, why, serial }: ByHolder & { readonly why: string; readonly serial: string | null },
): OrderStep | null => {
  if (held(order, holder) === null) return null
  const { attempts, revoke } = settled(order, serial)
  return step({ ...order, attempts, state: { kind: 'lost', why, sinceMs: nowMs } }, revoke)
}

export type SettleFacts = {
  /** Other replicas, with a lease. */
  readonly others: ReadonlySet<number>
  /** Where the issuer chooses serials: the one that was found for this key; null: none was found, or none was looked for. */
  readonly found: string | null
  readonly nowMs: number
}

/** Of an order whose holder is gone. Null: nothing is to be done. */
export const settle = (order: Order, { others, found, nowMs }: SettleFacts): OrderStep | null => {
  if (order.state.kind !== 'intended' || others.has(order.state.holder)) return null
  const { attempts, revoke } = settled(order, found)
  return step(
    { ...order, attempts, state: { kind: 'lost', why: 'the plane that held it is gone', sinceMs: nowMs } },
    revoke,
  )
}

/** The order has to be looked for at its issuer before it is settled. */
export const isToBeFound = ({ attempts }: Order): boolean =>
  attempts.some(({ serial, fate }) => fate.kind === 'open' && serial === null)

/** The same machine asks again with the same key. Null: only a lost order is replaced. */
export const replace = (order: Order, by: string, nowMs: number): OrderStep | null =>
  order.state.kind === 'lost' ? step({ ...order, state: { kind: 'replaced', by, atMs: nowMs } }) : null

/**
 * The node has another key now, or may have none: what may have been signed for this one is not to be used by anyone. When all of that has
 * ended nothing is left to be barred.
 */
export const abandon = (order: Order, why: string, nowMs: number): OrderStep | null => {
  if (order.state.kind !== 'lost' && order.state.kind !== 'intended') return null
  const { attempts, revoke } = settled(order, null)
  const abandoned: Order = { ...order, attempts, state: { kind: 'abandoned', why, atMs: nowMs } }
  return step(abandoned, revoke, hasOrphans(abandoned) && nowMs < lastPossibleMs(order))
}

/**
 * Ends what is open: with a serial it is an orphan, else it may exist. `returned`: the serial of the certificate that was found, or came back.
 * It is revoked beside the one we chose, where the issuer took another.
 */
const settled = (
  order: Order,
  returned: string | null,
): { attempts: readonly Attempt[]; revoke: readonly string[] } => {
  const revoke: string[] = []
  const attempts = order.attempts.map((one): Attempt => {
    if (one.fate.kind !== 'open') return one
    const known = [one.serial, returned].filter((serial) => serial !== null)
    revoke.push(...new Set(known))
    const [serial] = known
    return {
      ...one,
      fate: serial === undefined ? { kind: 'may-exist', untilMs: lastPossibleMs(order) } : { kind: 'orphan', serial },
    }
  })
  return { attempts, revoke }
}

/** What becomes of an attempt is not known yet. */
export const isToBeSettled = ({ attempts }: Pick<Order, 'attempts'>): boolean =>
  attempts.some(({ fate }) => fate.kind === 'open')

/** Something that no node got was signed for it, or may have been. */
export const hasOrphans = ({ attempts }: Pick<Order, 'attempts'>): boolean =>
  attempts.some(({ fate }) => fate.kind === 'orphan' || fate.kind === 'may-exist')

/** The issuer has refused each attempt: no certificate of it exists, and none can come. */
const isUnsigned = ({ attempts }: Pick<Order, 'attempts'>): boolean =>
  attempts.every(({ fate }) => fate.kind === 'unsigned')

/** Whatever was signed for it has ended then. A longer life would be a violation, and is never kept. */
export const lastPossibleMs = ({
  issuedAtMs,
  lifetimeMs,
  attempts,
}: Pick<Order, 'issuedAtMs' | 'lifetimeMs' | 'attempts'>): number =>
  Math.max(issuedAtMs, ...attempts.map(({ atMs }) => atMs)) + lifetimeMs

const latest = Number.MAX_SAFE_INTEGER
const digits = String(latest).length

/** What may last longest first, as a key that sorts; null: nothing was signed for it. */
export const lastingPlace = (order: Order): string | null =>
  isUnsigned(order) ? null : `${String(latest - lastPossibleMs(order)).padStart(digits, '0')}/${order.id}`

/** Nothing can come of it any more. Null: it is still under way, or waits for its node. Where nothing was signed it is long over. */
export const forgettableFromMs = (order: Order, toleranceMs: number): number | null => {
  if (order.state.kind === 'intended' || order.state.kind === 'lost') return null
  return isUnsigned(order) ? 0 : lastPossibleMs(order) + toleranceMs
}

/** Of orders that are not over there is one for each certificate that somebody can hold. Null: it is over. */
export const openFor = ({ subject, state }: Pick<Order, 'subject' | 'state'>): string | null =>
  state.kind === 'intended' || state.kind === 'lost' ? orderedFor(subject) : null

/** One of each node, program and worker. */
export const orderedFor = (subject: CertificateSubject): string => {
  const holder = certificateHolder(subject) ?? subject.kind
  return subject.kind === 'program' ? `${holder}/${subject.output}` : holder
}

/** What a request does with an order that is there for the same certificate. */
export type ForRepeat =
  /** It is under way in this process: wait for that. */
  | 'join'
  /** Another replica holds it and lives. */
  | 'wait'
  /** Its holder is gone: `settle`, and look again. */
  | 'settle'
  /** A new order takes its place: `replace` or `abandon`, in the commit of the new one. */
  | 'replace'
  /** It is over, and the rows of its node say what is answered. */
  | 'over'

/** `underWay`: in this process. An order of its own number that it does not know was left by the process before, or by a fault. */
export const forRepeat = (
  { state }: Pick<Order, 'state'>,
  underWay: boolean,
  others: ReadonlySet<number>,
): ForRepeat => {
  switch (state.kind) {
    case 'intended':
      return underWay ? 'join' : others.has(state.holder) ? 'wait' : 'settle'
    case 'lost':
      return 'replace'
    case 'issued':
    case 'replaced':
    case 'abandoned':
      return 'over'
  }
}
