// Commits the steps of an order, against the row as it was read: whoever holds it takes them, and loses to whoever has taken it over.

import type { Attribution, Change, Row } from '#domain/core/change.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { issuerRevocationKey, type IssuerRevocation } from '#domain/issuers/issuer-revocation.ts'
import { ordersActor, revocationChange, stepPart } from '#domain/issuers/order-changes.ts'
import type { Order, OrderStep } from '#domain/issuers/order.ts'
import { commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Store } from '#plane/store/contract/store.ts'

export type StepStory = {
  readonly by: Attribution
  readonly why?: IssuerRevocation['why'] & ('orphan' | 'violation')
  /** What the journal says besides. */
  readonly entries?: readonly EntryDraft[]
}

/** A lost race is tried again this often; the leader settles what is left. */
const tries = 4

/** `take`: the step from the order as it is now; null: it is not to be taken any more. The answer is the row after it. */
export const commitStep = async (
  core: Pick<FlowCore, 'store' | 'clock' | 'feed'>,
  first: Row<Order>,
  take: (order: Order, nowMs: number) => OrderStep | null,
  story: StepStory,
): Promise<Row<Order> | null> => {
  const { store, clock } = core
  let read: Row<Order> | null = first
  return retryLostRaces({ tries, onBusy: () => null }, async () => {
    const row = read ?? (await store.get('order', first.value.id))
    read = null
    const nowMs = clock.nowMs()
    const step = row === null ? null : take(row.value, nowMs)
    if (row === null || step === null) return null
    const { by, why = 'orphan', entries = [] } = story
    const spared = await inOutbox(store, step)
    const part = stepPart({ row, step, why, spared, by, nowMs })
    const change = { ...part, entries: [...part.entries, ...entries] } as unknown as Change
    return (await commitOnce(core, change)) === 'lost-race'
      ? 'lost-race'
      : { value: step.order, version: row.version + 1 }
  })
}

/**
 * A step that nobody asked for, decided on the row as it was looked at. One that has changed since may be another order, which its next
 * request has placed in the same row and is waiting for: it is left to the next look.
 */
export const commitAsRead = (
  core: Pick<FlowCore, 'store' | 'clock' | 'feed'>,
  row: Row<Order>,
  take: (order: Order, nowMs: number) => OrderStep | null,
): Promise<Row<Order> | null> =>
  commitStep(core, row, (now, nowMs) => (now === row.value ? take(now, nowMs) : null), { by: ordersActor })

/**
 * Of an order that is not held here any more: somebody else has settled it without knowing that this serial has come back. Where the order
 * says that its node has this very certificate, its own commit came through, and nobody was told: it stays.
 */
export const revokeReturned = async (
  core: Pick<FlowCore, 'store' | 'clock' | 'feed'>,
  { id }: Pick<Order, 'id'>,
  serial: string,
  { by, why = 'orphan', entries = [] }: StepStory,
): Promise<void> =>
  retryLostRaces({ tries, onBusy: () => undefined }, async () => {
    const row = await core.store.get('order', id)
    if (row === null || (row.value.state.kind === 'issued' && row.value.state.serial === serial)) return
    if ((await inOutbox(core.store, { order: row.value, revoke: [serial] })).has(serial)) return
    const change = revocationChange(row, { serial, why }, by, core.clock.nowMs())
    const told = { ...change, entries: [...change.entries, ...entries] } as unknown as Change
    return (await commitOnce(core, told)) === 'lost-race' ? 'lost-race' : undefined
  })

/** `of`: as `orderedFor` has it, a node by its id. Null: none is open. */
export const openOrderOf = async (store: Pick<Store, 'list'>, of: string): Promise<Row<Order> | null> => {
  const [found] = await store.list('order', { where: { open_for: of }, after: null, limit: 1 })
  return found ?? null
}

export const inOutbox = async (
  store: Pick<Store, 'get'>,
  { order, revoke }: Pick<OrderStep, 'order' | 'revoke'>,
): Promise<ReadonlySet<string>> => {
  const found = new Set<string>()
  for (const serial of revoke) {
    const key = issuerRevocationKey({ issuer: order.issuer, serial })
    if ((await store.get('issuer-revocation', key)) !== null) found.add(serial)
  }
  return found
}
