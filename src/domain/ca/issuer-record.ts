// What is on record of every CA certificate of the domain. Intermediates stay until their last leaf has expired, so a
// restart with memory keys invalidates nothing.

import type { IssuerId } from '#domain/core/node.ts'

export type IssuerRecord = {
  readonly id: IssuerId
  /** `recovery`: a root of its own, for the recovery listener only; no leaf of the runtime hangs under it. */
  readonly role: 'root' | 'domain-ca' | 'issuing' | 'recovery'
  /** DER, base64. */
  readonly der: string
  /** The id of the CA that signed it; its own for a root. */
  readonly parent: IssuerId
  readonly custody: 'file' | 'memory' | 'offline'
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** An issuing CA that no longer signs. */
  readonly retiredAtMs: number | null
  /** Somebody else may have its key: since then nothing it has signed, or will, is taken. */
  readonly compromisedAtMs: number | null
}
