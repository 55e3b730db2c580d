// The trust of recovery, as the rest of the plane sees it: a CA of its own for the recovery listener, and the keys that sign
// statements and derive bearer tokens. It is meant to outlive the runtime's.

import type { ServerIdentity } from './authority.ts'
import type { RecoveryRoot } from './recovery-roots.ts'

export type RecoveryAuthority = {
  /** What the recovery listener presents: key and chain (leaf, recovery root), PEM. */
  serverIdentity(): ServerIdentity
  onServerIdentity(run: (identity: ServerIdentity) => void): void
  /** PEM of the roots nodes are given for recovery, newest first. */
  roots(): readonly string[]
  /** The same, as operators are shown them. */
  rootsOnRecord(): readonly RecoveryRoot[]
  /** What operators have to know besides, in sentences. */
  warnings(): readonly string[]
  /** Renews the listener's certificate at half life, and makes the successor of a recovery root at its. Cheap when nothing is due. */
  maintain(): Promise<void>
  /** SubjectPublicKeyInfo, DER, base64; the first signs, the rest are still taken. */
  statementKeys(): readonly string[]
  signStatement(bytes: Uint8Array): Uint8Array
  isOurStatement(bytes: Uint8Array, signature: Uint8Array): boolean
  /** The bearer token that goes with this counter and key: the same question has the same answer, so nothing but its hash is stored. */
  bearerFor(about: { readonly node: string; readonly counter: number; readonly spki: string }): string
}
