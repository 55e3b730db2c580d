// How far a withdrawal has come at outside issuers: the outbox (plane/issuers) carries it there, and nothing here waits for that.

import type { IssuerId } from '#domain/core/node.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import type { Store } from '#plane/store/contract/store.ts'

export type AtIssuers = { readonly passedOn: number; readonly waiting: number; readonly givenUp: number }

/** Authorities of outside issuers on record. Empty for most domains. */
export const outsideAuthoritiesIn = async (store: Pick<Store, 'issuers'>): Promise<ReadonlySet<IssuerId>> => {
  const rows = await store.issuers()
  return new Set(rows.flatMap(({ value: { id, role } }) => (role.startsWith('outside-') ? [id] : [])))
}

/** What has happened is answered also where this cannot be read. */
export const atIssuersIfRead = async (
  store: Pick<Store, 'get' | 'list' | 'issuers'>,
  receipt: Pick<Receipt, 'id' | 'certificates'>,
): Promise<AtIssuers | null> => {
  try {
    return await receiptAtIssuers(store, receipt, await outsideAuthoritiesIn(store))
  } catch {
    return null
  }
}

/** A node has few certificates that have not expired. */
const mostCounted = 1000

/** Null: nothing that is on record was signed outside. */
export const receiptAtIssuers = async (
  store: Pick<Store, 'get' | 'list'>,
  receipt: Pick<Receipt, 'id' | 'certificates'>,
  outside: ReadonlySet<IssuerId>,
): Promise<AtIssuers | null> => {
  if (outside.size === 0) return null
  const rows = await store.list('issuer-revocation', {
    where: { receipt: receipt.id },
    after: null,
    limit: mostCounted,
  })
  const own = receipt.certificates.filter((key) => outside.has(key.slice(0, key.indexOf('/'))))
  // A month after its end a certificate is forgotten, with what became of its revocation.
  const known = await Promise.all(own.map((key) => store.get('certificate', key)))
  // Rows follow the commit of the withdrawal; older certificates of the epoch have some, too.
  const all = Math.max(rows.length, known.filter((row) => row !== null).length)
  if (all === 0) return null
  const count = (kind: 'done' | 'given-up'): number => rows.filter(({ value }) => value.state.kind === kind).length
  const [passedOn, givenUp] = [count('done'), count('given-up')]
  return { passedOn, givenUp, waiting: all - passedOn - givenUp }
}
