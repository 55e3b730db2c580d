// The built-in certificate authority, as the rest of the plane sees it: an issuer that also looks after itself.

import type { Static } from 'typebox'
import type { Attribution } from '#domain/core/change.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { CaView } from '#wire/ca/ca-api.ts'
import type { AgingWarning } from './authority-view.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Withdrawal, WithdrawalWanted } from './withdraw-issuer.ts'

export type Authority = Issuer & {
  /** What the listeners present: private key and chain (leaf, intermediates, root), PEM. */
  serverIdentity(): ServerIdentity
  /** Called after every replacement of the server certificate. */
  onServerIdentity(run: (identity: ServerIdentity) => void): void
  /**
   * Called at start and every few seconds after that: renews the server certificate at half life, replaces an intermediate
   * while the longest leaf still fits, retires what has ended, and warns where only an offline root could help.
   */
  maintain(longestLeafMs: number): Promise<void>
  view(): Static<typeof CaView>
  /** Authorities that grow old and that only a person can replace. */
  aging(): readonly AgingWarning[]
  /** Authorities and secrets that this store names and whose keys are gone. */
  lost(): readonly AgingWarning[]
  /** A new issuing CA from now on; the old one stays in the store until its last leaf has expired, and signs its lists. */
  rotate(by: Attribution): Promise<void | Refusal>
  /**
   * Its key may be compromised: nothing it has signed is accepted any more, nor anything below it. When the call resolves, its
   * successor signs and its key is gone. A repeated call finishes what a crash has left.
   */
  withdraw(wanted: WithdrawalWanted): Promise<Withdrawal | Refusal>
  /** A request for a new intermediate, to be carried to the offline root (PEM). Repeated, it is the same request. */
  request(by: Attribution, wanted?: 'runtime' | 'workers'): Promise<string | Refusal>
  /** Takes the root's answer to `request` into service. */
  importIssued(certificatePem: string, by: Attribution): Promise<void | Refusal>
}

export type ServerIdentity = {
  readonly keyPem: string
  readonly chainPem: string
  readonly notAfterMs: number
  /** Its certificate carries the plane's mark. */
  readonly marked: boolean
}
