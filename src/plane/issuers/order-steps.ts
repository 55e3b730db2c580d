// Commits the steps of an order, against the row as it was read: whoever holds it takes them, and loses to whoever has taken it over.

import type { Attribution, Change, Row } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
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
 * Of an order that somebody else has settled meanwhile, without knowing that this serial has come back. A certificate that has been kept
 * after all, in a commit whose end was not heard of, stays.
 */
export const revokeReturned = async (
  core: Pick<FlowCore, 'store' | 'clock' | 'feed'>,
  order: Order,
  serial: string,
): Promise<void> =>
  retryLostRaces({ tries, onBusy: () => undefined }, async () => {
    const now = await core.store.get('order', order.id)
    const state = now === null ? order.state : now.value.state
    if (state.kind === 'issued' && state.serial === serial) return
    const change = revocationChange(order, serial, ordersActor, core.clock.nowMs())
    if ((await inOutbox(core.store, { order, revoke: [serial] })).has(serial)) return
    return (await commitOnce(core, change)) === 'lost-race' ? 'lost-race' : undefined
  })

/** Of a node; null: none is open. */
export const openOrderOf = async (store: Pick<Store, 'list'>, node: NodeId): Promise<Row<Order> | null> => {
  const [found] = await store.list('order', { where: { open_for: node }, after: null, limit: 1 })
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
