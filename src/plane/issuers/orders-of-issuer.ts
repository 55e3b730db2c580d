// What an outside issuer may have signed for us and can still be valid: what a retirement waits for, and the orphans that operators see.

import type { Row } from '#domain/core/change.ts'
import { issuerRevocationKey } from '#domain/issuers/issuer-revocation.ts'
import { lastingPlace, lastPossibleMs, type Order } from '#domain/issuers/order.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { isoTime } from '#platform/clock.ts'
import type { OrphanView } from '#wire/issuers/issuer-api.ts'
import type { KnownIssuers } from './known-issuers.ts'

/** A retirement is refused for one as for a thousand. */
const enough = 1000

/** Not revoked there, and not expired. Those that last longest come first, so that what has expired is not read. */
export const unexpiredOf = async (
  { store, timers }: Pick<Core, 'store' | 'timers'>,
  { id }: Pick<OutsideIssuer, 'id'>,
  nowMs: number,
): Promise<{ readonly unexpired: number; readonly lastMs: number | null }> => {
  let unexpired = 0
  let lastMs: number | null = null
  const placeOf = (order: Order): string => lastingPlace(order) ?? ''
  for await (const order of everyRow(store, 'order', placeOf, { where: { issuer: id }, order: 'lasting', timers })) {
    const untilMs = lastPossibleMs(order)
    if (untilMs <= nowMs) break
    if (!(await canBeValid(store, order))) continue
    unexpired += 1
    lastMs ??= untilMs
    if (unexpired === enough) break
  }
  return { unexpired, lastMs }
}

const canBeValid = async (store: Pick<Store, 'get'>, order: Order): Promise<boolean> => {
  for (const { fate } of order.attempts) {
    switch (fate.kind) {
      case 'unsigned':
        break
      case 'open':
      case 'may-exist':
        return true
      case 'orphan':
      case 'kept':
        if (!(await isRevoked(store, order.issuer, fate.serial))) return true
    }
  }
  return false
}

const isRevoked = async (store: Pick<Store, 'get'>, issuer: string, serial: string): Promise<boolean> =>
  (await store.get('issuer-revocation', issuerRevocationKey({ issuer, serial })))?.value.state.kind === 'done'

/** More are not counted one by one. */
const mostCounted = 1000

export const waitingRevocations = async (store: Pick<Store, 'list'>, { id }: Pick<OutsideIssuer, 'id'>) => {
  const rows = await store.list('issuer-revocation', {
    where: { issuer: id },
    order: 'due',
    after: null,
    limit: mostCounted,
  })
  return { count: rows.length, sinceMs: rows[0]?.value.atMs ?? null }
}

/** Of a page of orders, those attempts that no node got anything of. */
export const orphansIn = async (
  store: Pick<Store, 'get'>,
  issuers: Pick<KnownIssuers, 'byId'>,
  orders: readonly Row<Order>[],
): Promise<OrphanView[]> => {
  const found: OrphanView[] = []
  for (const { value: order } of orders) {
    for (const { serial, fate, atMs } of order.attempts) {
      if (fate.kind !== 'orphan' && fate.kind !== 'may-exist') continue
      const known = fate.kind === 'orphan' ? fate.serial : serial
      const revocation =
        known === null
          ? null
          : await store.get('issuer-revocation', issuerRevocationKey({ issuer: order.issuer, serial: known }))
      found.push({
        issuer: issuers.byId(order.issuer)?.name ?? order.issuer,
        order: order.id,
        subject: subjectText(order),
        key: `SHA256:${order.spki}`,
        serial: known,
        fate: fate.kind,
        attempted_at: isoTime(atMs),
        until: isoTime(fate.kind === 'may-exist' ? fate.untilMs : lastPossibleMs(order)),
        revocation: revocation?.value.state.kind ?? null,
      })
    }
  }
  return found
}

const subjectText = ({ subject }: Pick<Order, 'subject'>): string => {
  switch (subject.kind) {
    case 'node':
      return `node ${subject.node}`
    case 'program':
      return `program ${subject.node}/${subject.output}`
    case 'worker':
      return `worker ${subject.worker}`
    case 'server':
      return 'server'
  }
}
