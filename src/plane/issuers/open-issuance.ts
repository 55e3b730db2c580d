// Who signs for nodes, as one part of a plane: the authority of the domain, and the issuers outside.

import type { Core } from '#plane/core/core.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { openOutsideBook, withOutside, type OutsideBook } from './outside-book.ts'
import { openOutsideOrders, type IssuerDoor, type OutsideOrders } from './outside-orders.ts'
import { sweepOrders } from './sweep-orders.ts'

export type Issuance = {
  /** The authority of the domain, which also knows what hangs under others. */
  readonly issuer: Issuer
  readonly orders: OutsideOrders
  readonly book: OutsideBook
  readonly upkeep: UpkeepTask
}

export const openIssuance = async (
  core: Core,
  { own, door }: { readonly own: Issuer; readonly door: IssuerDoor },
): Promise<Issuance> => {
  const book = await openOutsideBook(core)
  const orders = openOutsideOrders(core, { own, book, door })
  return { issuer: withOutside(own, book), orders, book, upkeep: sweepOrders(core, { door, book, orders }) }
}
