// What is done about orders that nobody goes on with: those of a replica that is gone are settled by the leader, and those that no node will
// repeat are abandoned. What a fault has left of its own a replica settles itself.

import type { Row } from '#domain/core/change.ts'
import { abandonedBecause, sparingKey } from '#domain/issuers/order-changes.ts'
import { abandon, isToBeFound, settle, type Order } from '#domain/issuers/order.ts'
import { certificateKey } from '#domain/core/certificate.ts'
import { withStore, type Core } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { everyRow, rowPages } from '#plane/core/pages.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { turn } from '#platform/timers.ts'
import { commitAsRead } from './order-steps.ts'
import type { OutsideBook } from './outside-book.ts'
import { readOrderer } from './orderer.ts'
import { otherReplicas, type IssuerDoor, type OutsideOrders } from './outside-orders.ts'

export type SweepParts = {
  readonly door: Pick<IssuerDoor, 'signerOf'>
  readonly book: Pick<OutsideBook, 'authoritiesOf'>
  readonly orders: Pick<OutsideOrders, 'isUnderWay'>
}

const everyMs = 5000
/** To look for one certificate. */
const findWithinMs = 60_000
/** At one issuer: most of its slots stay for those who want a signature. */
const searchesAtOnce = 4
/** A look begins no search later than that, so that an issuer that is slow to answer holds up the others, and what else is to be done, for two minutes at most. */
const searchForMs = 60_000
const mostInALook = 100
const lookedInATurn = 50

export const sweepOrders = (core: Core, parts: SweepParts): UpkeepTask => ({
  name: 'orders to issuers',
  where: 'leader',
  everyMs,
  async run(asLeader) {
    const leading = withStore(core, asLeader)
    await settleLeft(leading, parts, (holder, others) => !others.has(holder))
    await abandonLost(leading)
  },
})

/**
 * A fault of the store leaves orders that their request does not know to be there, or could not end. The leader waits for this replica, which
 * lives, and so would a node that asks another one.
 */
export const sweepOwnOrders = (core: Core, parts: SweepParts): UpkeepTask => ({
  name: 'own orders to issuers',
  where: 'each',
  everyMs,
  async run() {
    const { replicas } = core.store
    if (replicas.leadership() === null) await settleLeft(core, parts, (holder) => holder === replicas.self)
  },
})

/** An issuer that refuses a whole fleet leaves an order of each node: others are served in between. */
const ordersIn = ({ store, timers }: Core, state: Order['state']['kind']) =>
  rowPages(store, 'order', ({ id }) => id, { where: { state }, limit: 100, timers })

const settleLeft = async (
  core: Core,
  parts: SweepParts,
  isLeft: (holder: number, others: ReadonlySet<number>) => boolean,
): Promise<void> => {
  const untilMs = core.clock.monotonicMs() + searchForMs
  const isLate = (): boolean => core.clock.monotonicMs() >= untilMs
  const searches = new Map<string, Search>()
  const settled = async (row: Row<Order>, found: string | null): Promise<void> => {
    const others = await otherReplicas(core)
    await commitAsRead(core, row, (order, nowMs) => settle(order, { others, found, nowMs }))
  }
  for await (const page of ordersIn(core, 'intended')) {
    const others = await otherReplicas(core)
    for (const row of page) {
      const { id, state, issuer } = row.value
      if (state.kind !== 'intended' || !isLeft(state.holder, others) || parts.orders.isUnderWay(id)) continue
      if (!isToBeFound(row.value)) {
        await settled(row, null)
        continue
      }
      const search = searches.get(issuer) ?? { waiting: [] }
      searches.set(issuer, search)
      // The others are found again by the next look.
      if (search.waiting.length < mostInALook) search.waiting.push(row)
    }
  }
  const lane = async ({ waiting }: Search): Promise<void> => {
    for (let row = waiting.shift(); row !== undefined && !isLate(); row = waiting.shift())
      await settled(row, await lookedFor(core, parts, row.value))
  }
  const lanes = [...searches.values()].flatMap((search) => Array.from({ length: searchesAtOnce }, () => lane(search)))
  for (const ended of await Promise.allSettled(lanes)) if (ended.status === 'rejected') throw ended.reason
}

/** Orders at one issuer. */
type Search = { readonly waiting: Row<Order>[] }

/** Once: what is not found may exist, and ends by itself. */
const lookedFor = async (core: Core, { door, book }: SweepParts, order: Order): Promise<string | null> => {
  const { store, timers, log } = core
  const stop = new AbortController()
  const cancel = timers.after(findWithinMs, () => stop.abort(), 'background')
  try {
    const signer = await door.signerOf(order.issuer)
    const authorities = await authoritiesOf(store, book, order.issuer)
    let looked = 0
    const isOnRecord = async (serial: string): Promise<boolean> => {
      // A mount can have a hundred thousand, and SQLite answers within the same turn: others are served in between.
      if (++looked % lookedInATurn === 0) await turn(timers)
      for (const id of authorities)
        if ((await store.get('certificate', certificateKey(id, serial))) !== null) return true
      return false
    }
    return signer === null ? null : await signer.find(order.spki, isOnRecord, stop.signal)
  } catch (error) {
    log.warn({ err: error, order: order.id }, 'what an outside issuer may have signed could not be looked for')
    return null
  } finally {
    cancel()
  }
}

const authoritiesOf = async (store: Store, book: SweepParts['book'], issuer: string): Promise<readonly string[]> => {
  for await (const row of everyRow(store, 'outside-issuer', ({ name }) => name))
    if (row.id === issuer) return book.authoritiesOf(row)
  return []
}

const abandonLost = async (core: Core): Promise<void> => {
  for await (const page of ordersIn(core, 'lost')) {
    const { clockToleranceMs } = (await domainSettingsRow(core.store)).value
    for (const row of page) await abandonIfOver(core, row, clockToleranceMs)
  }
}

const abandonIfOver = async (core: Core, row: Row<Order>, toleranceMs: number): Promise<void> => {
  const { store, clock } = core
  const orderer = await readOrderer(store, row.value)
  const why = abandonedBecause(row.value, orderer, clock.nowMs(), toleranceMs)
  if (why === null) return
  await commitAsRead(core, row, (order, nowMs) => {
    const step = abandon(order, why, nowMs)
    return step === null ? null : sparingKey(step, orderer?.slots ?? [])
  })
}
