// Receipts: the proof that identities were taken away, and how far it has come.

import { readReceipt, type ReceiptReading } from './read-receipts.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { QueryOf } from '#wire/core/endpoint.ts'
import { receiptApi, receiptView } from '#wire/revocation/receipt-api.ts'
import { answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { Core } from '#plane/core/core.ts'

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
  const last = rows.at(-1)
  return answer({
    receipts: rows.map(({ value }) => receiptView(value, store.replicas.count(), null)),
    next: rows.length < limit || last === undefined ? null : last.value.id,
  })
}

const showReceipt = async (store: Store, reading: ReceiptReading, call: CallOf<typeof receiptApi.show>) => {
  const { wait_ms: waitMs = 0 } = call.query
  const found = await readReceipt(store, reading, call.params.id, waitMs)
  if (found.kind === 'refused') return found
  return answer(receiptView(found.receipt, store.replicas.count(), found.entry))
}
