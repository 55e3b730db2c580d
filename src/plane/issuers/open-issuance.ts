// Who signs for nodes, as one part of a plane: the authority of the domain, and the issuers outside.

import type { Core } from '#plane/core/core.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import { openIssuerChoice } from './choose-issuer.ts'
import { openIssuerRoots, type IssuerRootSet } from './issuer-roots.ts'
import type { KnownIssuers } from './known-issuers.ts'
import { endWithdrawnMigrations } from './migrate-profile.ts'
import { openKnownMigrations, type KnownMigrations } from './known-migrations.ts'
import { openOutsideBook, withOutside, type OutsideBook } from './outside-book.ts'
import { openOutsideOrders, type IssuerDoor, type OutsideOrders } from './outside-orders.ts'
import { openOutsideProgramRoots, type OutsideProgramRoots } from './program-roots.ts'
import { sweepOrders, sweepOwnOrders } from './sweep-orders.ts'

export type Issuance = {
  /** The authority of the domain, which also knows what hangs under others. */
  readonly issuer: Issuer
  readonly orders: OutsideOrders
  readonly book: OutsideBook
  readonly migrations: KnownMigrations
  readonly roots: IssuerRootSet
  /** For verifiers of programs. */
  readonly programRoots: OutsideProgramRoots
  readonly upkeep: UpkeepTask
  /** Of this replica, where it does not lead. */
  readonly ownUpkeep: UpkeepTask
  /** Ends migrations whose issuer was withdrawn. */
  readonly endsWithdrawn: UpkeepTask
}

export const openIssuance = async (
  core: Core,
  {
    own,
    door,
    known,
  }: { readonly own: Issuer; readonly door: IssuerDoor; readonly known: Pick<KnownIssuers, 'find' | 'all'> },
): Promise<Issuance> => {
  const book = await openOutsideBook(core)
  const migrations = await openKnownMigrations(core)
  const roots = await openIssuerRoots(core, { known, book, own, migrations })
  const programRoots = await openOutsideProgramRoots(core, { known, book })
  const choice = openIssuerChoice(core, { migrations, roots })
  const orders = openOutsideOrders(core, { own, book, door, choice })
  const issuer = withOutside(own, book, () => roots.current())
  const endsWithdrawn = endWithdrawnMigrations(core, { known, book, migrations })
  const sweeping = { door, book, orders }
  const [upkeep, ownUpkeep] = [sweepOrders(core, sweeping), sweepOwnOrders(core, sweeping)]
  return { issuer, orders, book, migrations, roots, programRoots, upkeep, ownUpkeep, endsWithdrawn }
}
