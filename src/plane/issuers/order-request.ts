// What is asked of an outside issuer for one certificate, and what has come back of it.

import type { IssuedCertificate, SigningOrder } from '#domain/core/certificate.ts'
import type { Attribution, ChangePart, Read, Row } from '#domain/core/change.ts'
import type { Intended } from '#domain/identity/node-certificate.ts'
import type { CertifiedSlot } from '#domain/issuers/order-changes.ts'
import type { Order } from '#domain/issuers/order.ts'
import type { ChosenIssuer } from './choose-issuer.ts'
import type { Attempt } from './outside-signer.ts'

export type OrderRequest = {
  readonly issuer: ChosenIssuer
  readonly purpose: Attempt['purpose']
  readonly kind: Attempt['kind']
  readonly order: SigningOrder
  readonly leastLifetimeMs: number
  /** The caller's request, DER. */
  readonly request: Uint8Array
  readonly intent: Intended
  /** What is open for it already; null: nothing, or an order for another key. */
  readonly ordered: Row<Order> | null
  /** The certificates that it has. */
  readonly slots: readonly CertifiedSlot[]
  /** The hash of the token that it binds; null: it came without one. */
  readonly token: string | null
  readonly by: Attribution
  readonly nowMs: number
}

/** An order of this request whose certificate has come back. It ends by `completion` in a commit and `done`, or by `decline`. */
export type SignedOrder = {
  readonly kind: 'signed'
  readonly certificate: IssuedCertificate
  /** The name of who signed it. */
  readonly issuer: string
  /** Whether it is held here as before, and is what is ordered now. `signs`: what relies on it that its issuer still signs; null: it does not. */
  answers(wanted: SigningOrder, signs: readonly Read[] | null): Promise<boolean>
  completion(nowMs: number): Promise<Required<ChangePart>>
  done(): void
  /** The certificate is not handed out: it is revoked there, and the node may repeat its request. */
  decline(why: string): Promise<void>
}
