// An order is the record of one certificate to be signed. An issuer accepts nothing else, and only a decision in this
// folder makes one: the linter keeps `placeOrder` inside src/domain.

import type { NodeId } from './node.ts'

declare const decided: unique symbol

export type SigningOrder = {
  readonly id: string
  readonly subject: { readonly cn: string; readonly o: string; readonly ou: string }
  readonly uriSans: readonly string[]
  readonly dnsSans: readonly string[]
  readonly ipSans: readonly string[]
  readonly usage: 'client' | 'server'
  /** SubjectPublicKeyInfo, DER. The only thing a request contributes. */
  readonly publicKey: Uint8Array
  readonly issuedAtMs: number
  readonly lifetimeMs: number
  readonly aiaUrl: string | null
  readonly cdpUrl: string | null
  readonly for: { readonly kind: 'node'; readonly node: NodeId; readonly epoch: number } | { readonly kind: 'server' }
  readonly [decided]: true
}

export type OrderDraft = Omit<SigningOrder, typeof decided>

export const placeOrder = (draft: OrderDraft): SigningOrder => draft as SigningOrder
