// Receipts: the proof that identities were taken away, and how far it has come.

import type { Store, Cursor } from '#plane/store/contract/store.ts'
import type { QueryOf } from '#wire/core/endpoint.ts'
import { receiptApi, receiptView } from '#wire/revocation/receipt-api.ts'
import { answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { Core } from '#plane/core/core.ts'
import type { EntryType } from '#domain/core/journal-entry.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'
import { outsideAuthoritiesIn, receiptAtIssuers } from './at-issuers.ts'
import type { Receipts } from './receipts.ts'

const usualPage = 100

export const operatorReceiptRoutes = ({ store }: Pick<Core, 'store'>, reading: ReceiptReading): readonly Route[] =>
  serve(receiptApi, {
    list: (call) => listReceipts(store, call.query),
    show: (call) => showReceipt(store, reading, call),
  })

const listReceipts = async (store: Store, query: QueryOf<typeof receiptApi.list>) => {
  const { node, open = false, after = null, limit = usualPage } = query
  const where = { ...(node !== undefined && { node }), ...(open && { unsettled: 1 }) }
  const rows = await store.list('receipt', { where, after, limit })
  if (node !== undefined && rows.length === 0 && (await store.get('node', node)) === null)
    return refuse('NODE_NOT_FOUND', node)
  const last = rows.at(-1)
  const outside = await outsideAuthoritiesIn(store)
  const views = rows.map(async ({ value }) =>
    receiptView(value, store.replicas.count(), null, await receiptAtIssuers(store, value, outside)),
  )
  return answer({
    receipts: await Promise.all(views),
    next: rows.length < limit || last === undefined ? null : last.value.id,
  })
}

const showReceipt = async (store: Store, reading: ReceiptReading, call: CallOf<typeof receiptApi.show>) => {
  const { wait_ms: waitMs = 0 } = call.query
  const found = await readReceipt(store, reading, call.params.id, waitMs)
  if (found.kind === 'refused') return found
  const atIssuers = await receiptAtIssuers(store, found.receipt, await outsideAuthoritiesIn(store))
  return answer(receiptView(found.receipt, store.replicas.count(), found.entry, atIssuers))
}

// Looking at receipts, and waiting for one: how `muster node revoke` and `muster receipt show --wait` work.

export type ReceiptReading = {
  readonly arrivals: Arrivals
  readonly receipts: Pick<Receipts, 'refresh'>
}

export type FoundReceipt = { readonly kind: 'found'; readonly receipt: Receipt; readonly entry: Cursor | null }

/** Ends when it is settled, or the time is over. */
const readReceipt = async (
  store: Store,
  { arrivals, receipts }: ReceiptReading,
  id: string,
  waitMs: number,
): Promise<FoundReceipt | Refusal> => {
  if (waitMs === 0) return foundNow(store, receipts, id)
  const arrival = arrivals.expect(({ type, body }) => type === 'receipt.settled' && body['receipt'] === id)
  if (arrival.kind === 'refused') return arrival
  try {
    const found = await store.get('receipt', id)
    if (found !== null && found.value.settledAtMs === null) await arrival.within(waitMs)
    return await foundNow(store, receipts, id)
  } finally {
    arrival.cancel()
  }
}

const foundNow = async (
  store: Store,
  receipts: ReceiptReading['receipts'],
  id: string,
): Promise<FoundReceipt | Refusal> => {
  const row = await store.get('receipt', id)
  if (row === null) return refuse('RECEIPT_NOT_FOUND', id)
  const receipt = await receipts.refresh(row.value)
  return { kind: 'found', receipt, entry: await entryOf(store, row.value) }
}

const entryTypes: Readonly<Record<Receipt['kind'], EntryType>> = {
  revoke: 'host.revoked',
  decommission: 'host.revoked',
  quarantine: 'node.quarantined',
}

/** A node is taken away seldom: of its last times, the one that was decided in that moment. */
const timesLookedAt = 20

const entryOf = async (store: Store, { node, kind, decidedAtMs }: Receipt): Promise<Cursor | null> => {
  const query = { node, type: entryTypes[kind], after: null, last: timesLookedAt, limit: timesLookedAt }
  const entries = await store.journal.read(query)
  return entries.find(({ entry }) => entry.atMs === decidedAtMs)?.cursor ?? null
}
