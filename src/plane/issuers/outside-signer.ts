// The shape of an outside issuer: what step-ca and Vault have in common. It knows neither the store nor the clock of the plane; slots,
// breaker, time limits, the check of what comes back, and the rows are around it.

import type { RevocationReason, SigningOrder } from '#domain/core/certificate.ts'
import type { KeyType } from '#domain/core/profile.ts'

export type OutsideSigner = {
  /** What it can do, probed: does it take our serial, can it revoke, can serials be listed? */
  readonly abilities: Abilities
  /** By how much its clock was ahead of ours at its last answer, below 0 behind; null: it has not said. */
  readonly aheadMs: number | null
  /** One request to sign. `unsent`: no byte was written. `unsigned`: the issuer refused, and says why. Rejects on everything else. */
  sign(attempt: Attempt, signal: AbortSignal): Promise<Returned | Unsent | Unsigned>
  /** `revoked` also where it was revoked before. Rejects where that is unknown. */
  revoke(serial: string, reason: RevocationReason, signal: AbortSignal): Promise<'revoked' | 'unknown there'>
  /** Serials that are not on record; null: not searched. */
  find(spki: string, known: (serial: string) => Promise<boolean>, signal: AbortSignal): Promise<string | null>
  /** Signs and revokes a throw-away leaf. Each fault names the setting and the line that makes it right. */
  test(signal: AbortSignal): Promise<readonly SettingFault[]>
}

export type Abilities = { readonly takesSerial: boolean; readonly revokes: boolean; readonly lists: boolean }

export type Attempt = {
  readonly order: SigningOrder
  /** The profile that the order was made under, by its name; else an output or a worker issuer (domain/issuers/named-issuer.ts). */
  readonly kind: string
  /** What the certificate is for: step-ca has another provisioner for renewals. */
  readonly purpose: 'enrollment' | 'renewal' | 'recovery'
  /** As the node has sent it: PKCS#10, DER. */
  readonly request: Uint8Array
  /** Hex, lower case, as domain/issuers/serial.ts makes it; null: the issuer chooses. */
  readonly serial: string | null
}

/** `chain`: DER, the leaf first; the root may be the last. It is judged by the caller. */
export type Returned = { readonly kind: 'returned'; readonly chain: readonly Uint8Array[] }
export type Unsent = { readonly kind: 'unsent'; readonly why: string }
export type Unsigned = { readonly kind: 'unsigned'; readonly why: string }

/** `setting`: as the issuer calls it. `fix`: the line or command that makes it right. */
export type SettingFault = { readonly setting: string; readonly why: string; readonly fix: string }

/** What is ordered under a profile, for an output or for workers: for a throw-away leaf. */
export type TestSample = {
  /** As that of an attempt. */
  readonly kind: string
  /** In words: `profile edge`. */
  readonly what: string
  readonly keyTypes: readonly KeyType[]
  readonly leastLifetimeMs: number
  /** By how much the clock of the issuer may differ from ours. */
  readonly toleranceMs: number
  /** For a node that does not exist. */
  readonly order: (publicKey: Uint8Array) => SigningOrder
}

/** The issuer has answered a revocation with another certificate: that is no answer, and `issuer.violation` says so. */
export class AnotherSerial extends Error {
  override readonly name = 'AnotherSerial'

  constructor(asked: string, answered: string) {
    super(`it was asked about the serial ${asked} and answered about ${answered}`)
  }
}
