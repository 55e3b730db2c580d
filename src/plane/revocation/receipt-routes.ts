// Receipts: the proof that identities were taken away, and how far it has come.

import type { Static } from 'typebox'
import type { Refusal } from '#domain/core/refusal.ts'
import { readReceipt, type ReadReceiptsDeps } from './read-receipts.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { receiptView } from './receipt-view.ts'
import { ReceiptListAnswer, ReceiptListQuery, ReceiptQuery, ReceiptView } from '#wire/revocation/receipt-api.ts'
import { IdParams, param } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

export type ReceiptRoutesDeps = ReadReceiptsDeps & { readonly store: Pick<Store, 'replicas'> }

const usualPage = 100

export const operatorReceiptRoutes = (deps: ReceiptRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/receipts',
    access: 'viewer',
    summary: 'The proofs that identities were taken away, oldest first, page by page',
    query: ReceiptListQuery,
    answer: ReceiptListAnswer,
    handle: (call) => listReceipts(deps, call.query),
  },
  {
    method: 'GET',
    path: '/v1/receipts/:id',
    access: 'viewer',
    summary: 'One of them; with wait_ms, waits until every peer has dropped the key',
    params: IdParams,
    query: ReceiptQuery,
    answer: ReceiptView,
    handle: (call) => showReceipt(deps, call),
  },
]

const listReceipts = async (deps: ReceiptRoutesDeps, query: Static<typeof ReceiptListQuery>): Promise<Answer> => {
  const { node, open = false, after = null, limit = usualPage } = query
  const where = { ...(node !== undefined && { node }), ...(open && { unsettled: 1 }) }
  const rows = await deps.store.list('receipt', { where, after, limit })
  const last = rows.at(-1)
  return answer({
    receipts: rows.map(({ value }) => receiptView(value, deps.store.replicas.count(), null)),
    next: rows.length < limit || last === undefined ? null : last.value.id,
  })
}

const showReceipt = async (deps: ReceiptRoutesDeps, call: Call): Promise<Answer | Refusal> => {
  const { wait_ms: waitMs = 0 } = call.query as Static<typeof ReceiptQuery>
  const found = await readReceipt(deps, param(call, 'id'), waitMs)
  if (found.kind === 'refused') return found
  return answer(receiptView(found.receipt, deps.store.replicas.count(), found.entry))
}
