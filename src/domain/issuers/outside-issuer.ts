// An outside issuer as operators have set it up: where it is, what it is trusted by, how we prove ourselves to it, and what it was found to
// be able to do. The row has no secret; it names what is sealed in the custody of keys.

import type { MayBeForged } from '#domain/core/change.ts'
import type { IssuerId } from '#domain/core/node.ts'

/** What signs where nothing else is named. No outside issuer has this name. */
export const builtIn = 'built-in'

export type OutsideIssuer = MayBeForged & {
  /** Never given to another one; the name can be. */
  readonly id: string
  readonly name: string
  /** `https://HOST[:PORT]`, without a path. */
  readonly url: string
  /** PEM of the only roots that its server is verified with. */
  readonly serverRoots: readonly string[]
  /** The CA certificates that its leaves lead to, by the hash of their key; each has a row of kind `issuer`. */
  readonly roots: readonly IssuerId[]
  readonly access: IssuerAccess
  /** Where the secrets lie, and which there are. Null: they are gone with the issuer. */
  readonly secrets: SecretsHeld | null
  /** As it was tested last. Null: it has not passed a test, and no profile may name it. */
  readonly abilities: IssuerAbilities | null
  readonly state: IssuerState
  readonly addedAtMs: number
  readonly addedBy: string
}

export type IssuerAccess = StepCaAccess | VaultAccess

export type StepCaAccess = {
  readonly kind: 'step-ca'
  /** A JWK provisioner: enrollment and recovery. */
  readonly provisioner: string
  /** An X5C provisioner: renewals. */
  readonly renewalProvisioner: string
}

export type VaultAccess = {
  readonly kind: 'vault'
  readonly namespace: string | null
  /** Of the PKI engine. */
  readonly mount: string
  /** By the name of the profile; `*`: of all others. */
  readonly roles: Readonly<Record<string, string>>
  readonly login: VaultLogin
}

export type VaultLogin =
  | { readonly kind: 'approle'; readonly mount: string; readonly roleId: string }
  | { readonly kind: 'certificate'; readonly mount: string; readonly role: string }
  | { readonly kind: 'token' }

export type SecretsHeld = {
  /** Of the key in the custody: `issuer-secret/ID`. Another one for each change, so that a replica never has an old one under it. */
  readonly key: string
  readonly names: readonly string[]
}

export type IssuerAbilities = {
  readonly testedAtMs: number
  /** It signs under a serial that we choose. */
  readonly takesSerial: boolean
  readonly revokes: boolean
  /** What it has signed can be listed. */
  readonly lists: boolean
  /** The longest lifetime that it was tested with. */
  readonly longestMs: number
}

export type IssuerState =
  | { readonly kind: 'enabled' }
  /** Nothing is signed there; what is to be revoked still is. */
  | { readonly kind: 'disabled'; readonly sinceMs: number; readonly by: string; readonly why: string }
  /** For good: nothing is sent to it, its secrets are gone, and its name is free. */
  | { readonly kind: 'retired'; readonly atMs: number; readonly by: string }
