// What the agent keeps, as one unit: who it is, the certificate that works, and the one it is about to replace it with.

import type { KeyType } from '#domain/core/profile.ts'
import type { AgentProfile, EndpointSet, IssuerRoots, RecoveryTrust } from '#wire/identity/identity-api.ts'
import type { MadeFor } from './made-for.ts'
import type { CertificateTimes } from './should-renew.ts'

/** A key and the certificate for it. */
export type Generation = CertificateTimes & {
  readonly keyPem: string
  /** The leaf, then its issuers. */
  readonly chainPem: string
  /** The root above them, which is not what the plane is trusted by; null: it is not known. */
  readonly rootPem: string | null
  readonly serial: string
  /** It was accepted by the plane at least once. */
  readonly proven: boolean
}

/** Where an identity comes from. `static` is no identity: it is the certificate of an image. */
export type IdentitySource = 'plane' | 'static' | 'spire'

export type Identity = {
  readonly source: IdentitySource
  readonly nodeId: string
  readonly domain: string
  readonly epoch: number
  readonly profile: AgentProfile
  readonly endpoints: EndpointSet
  /** What the plane's server certificate is verified by: PEM, one certificate each. */
  readonly roots: readonly string[]
  readonly trustRevision: number
  /** Subject key identifiers of authorities below them that the plane has withdrawn. */
  readonly withdrawnIssuers: readonly string[]
  /** What certificates of nodes hang under besides; no server is verified with them. */
  readonly issuerRoots: IssuerRoots
  readonly graceMs: number
  /** Fields of requests the plane understands, beyond which nothing is sent. */
  readonly understands: readonly string[]
  /** The plane has said that its certificates carry its mark (ruling 20). Never unlearned. */
  readonly marked: boolean
  /** Where it was enrolled, for joining again by hardware; and the hash of the secret that is used up. */
  readonly origin: { readonly url: string; readonly rootFingerprint: string; readonly usedSecretHash: string | null }
  /** The count the next renewal or recovery has to present, signed by the plane; null from a plane that has none. */
  readonly counter: string | null
  /** How it comes back when its certificate cannot; null: by a new token only. */
  readonly recovery: AgentRecovery | null
  /** How far the clock of this machine may be off before it is said. */
  readonly clockToleranceMs: number
  readonly current: Generation
  /** Kept until `current` has worked. */
  readonly previous: Generation | null
}

export type AgentRecovery = {
  readonly trust: RecoveryTrust
  readonly credential:
    | ({ readonly kind: 'key' } & RecoveryKey)
    | { readonly kind: 'bearer'; readonly token: string }
    /** The plane took none, or a plane without recovery was asked. */
    | { readonly kind: 'none' }
}

/** A second key, with no other right than to ask for a certificate when the first is gone. */
export type RecoveryKey = { readonly keyType: KeyType; readonly keyPem: string }

/** A request that may have reached the plane: repeated as it is until it is answered (ruling 4). */
export type KeyRequest = {
  readonly purpose:
    | { readonly kind: 'enroll' }
    | { readonly kind: 'renew'; readonly serial: string }
    /** `epoch`: the one it is to replace; null for a machine that has none. `correlation`: of the whole story. */
    | { readonly kind: 'recover'; readonly epoch: number | null; readonly correlation: string }
  readonly keyType: KeyType
  /** The type that was wanted, where the plane has said that the profile does not allow it; null: it is of the wanted type. */
  readonly insteadOf: KeyType | null
  readonly keyPem: string
  readonly csrPem: string
  readonly sinceMs: number
  /** Made together with it, and registered by it. */
  readonly recoveryKey: RecoveryKey | null
  /** Of an enrollment; null: from an agent that did not write it down. */
  readonly madeFor: MadeFor | null
}

export type Credentials = { readonly identity: Identity | null; readonly request: KeyRequest | null }

export const noIssuerRoots: IssuerRoots = { revision: 0, roots: [] }

export const noCredentials: Credentials = { identity: null, request: null }

export const withRequest = (credentials: Credentials, request: KeyRequest | null): Credentials => ({
  ...credentials,
  request,
})

export const enrolledAs = (identity: Identity): Credentials => ({ identity, request: null })

export type Renewal = Pick<
  Identity,
  | 'profile'
  | 'endpoints'
  | 'roots'
  | 'withdrawnIssuers'
  | 'issuerRoots'
  | 'understands'
  | 'marked'
  | 'counter'
  | 'recovery'
  | 'clockToleranceMs'
>

/** The generation it was renewed with stays until the new one is proven. */
export const renewedTo = (identity: Identity, next: Generation, renewal: Renewal): Credentials => ({
  identity: { ...identity, ...renewal, current: next, previous: identity.current },
  request: null,
})

export const provenCurrent = (identity: Identity): Identity => ({
  ...identity,
  current: { ...identity.current, proven: true },
  previous: null,
})

/** Back to the generation that worked, when the plane does not know the new one; null when there is none to go back to. */
export const fallenBack = (identity: Identity): Identity | null =>
  identity.current.proven || identity.previous === null
    ? null
    : { ...identity, current: identity.previous, previous: null }

/** The open request, if it is for this, with a key of the type now wanted or of one that the plane asked for in its place. */
export const requestFor = (
  credentials: Credentials,
  purpose: KeyRequest['purpose'],
  keyType: KeyType,
): KeyRequest | null => {
  const open = credentials.request
  if (open === null || open.purpose.kind !== purpose.kind || (open.insteadOf ?? open.keyType) !== keyType) return null
  if (open.purpose.kind === 'renew' && purpose.kind === 'renew' && open.purpose.serial !== purpose.serial) return null
  if (open.purpose.kind === 'recover' && purpose.kind === 'recover' && open.purpose.epoch !== purpose.epoch) return null
  return open
}

/** The plane has refused a key: the next one is of a type that it allows. */
export const withKeyTypes = ({ identity }: Credentials, keyTypes: readonly string[]): Credentials => ({
  identity: identity === null ? null : { ...identity, profile: { ...identity.profile, key_types: [...keyTypes] } },
  request: null,
})

/** More than these the oldest are forgotten; a plane names at most half as many. */
const mostWithdrawn = 64

/** Withdrawn authorities stay withdrawn: a replica that does not know it yet must not bring one back. */
export const mergeWithdrawn = (known: readonly string[], named: readonly string[] | undefined): readonly string[] =>
  named === undefined || named.every((id) => known.includes(id))
    ? known
    : [...new Set([...named, ...known])].slice(0, mostWithdrawn)
