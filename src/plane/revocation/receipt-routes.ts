// Receipts: the proof that identities were taken away, and how far it has come.

import { readReceipt, type ReadReceiptsDeps } from './read-receipts.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { QueryOf } from '#wire/core/endpoint.ts'
import { receiptApi, receiptView } from '#wire/revocation/receipt-api.ts'
import { answer, type CallOf, type Route, serve } from '#plane/http/route.ts'

export type ReceiptRoutesDeps = ReadReceiptsDeps & { readonly store: Pick<Store, 'replicas'> }

const usualPage = 100

export const operatorReceiptRoutes = (deps: ReceiptRoutesDeps): readonly Route[] =>
  serve(receiptApi, {
    list: (call) => listReceipts(deps, call.query),
    show: (call) => showReceipt(deps, call),
  })

const listReceipts = async (deps: ReceiptRoutesDeps, query: QueryOf<typeof receiptApi.list>) => {
  const { node, open = false, after = null, limit = usualPage } = query
  const where = { ...(node !== undefined && { node }), ...(open && { unsettled: 1 }) }
  const rows = await deps.store.list('receipt', { where, after, limit })
  const last = rows.at(-1)
  return answer({
    receipts: rows.map(({ value }) => receiptView(value, deps.store.replicas.count(), null)),
    next: rows.length < limit || last === undefined ? null : last.value.id,
  })
}

const showReceipt = async (deps: ReceiptRoutesDeps, call: CallOf<typeof receiptApi.show>) => {
  const { wait_ms: waitMs = 0 } = call.query
  const found = await readReceipt(deps, call.params.id, waitMs)
  if (found.kind === 'refused') return found
  return answer(receiptView(found.receipt, deps.store.replicas.count(), found.entry))
}
