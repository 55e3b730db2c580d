// A profile is policy as data: what a node of this kind may do, and how long things last.

import type { Output } from '#domain/programs/output.ts'
import type { WireguardPolicy } from './wireguard.ts'

export const keyTypes = ['ed25519', 'p256', 'p384'] as const
export type KeyType = (typeof keyTypes)[number]

/** A plane of a later release may name others. */
export const isKeyType = (text: string): text is KeyType => (keyTypes as readonly string[]).includes(text)

export const joinMethods = ['token', 'hardware', 'tpm'] as const
export type JoinMethod = (typeof joinMethods)[number]

export type Profile = {
  readonly name: string
  readonly description: string
  readonly join: {
    /** Every one of these has to succeed. */
    readonly allOf: readonly JoinMethod[]
    /** `node`: the token names the node. `domain`: it pre-authorises one registration. */
    readonly tokenScope: 'node' | 'domain'
    readonly tokenTtlMs: number
  }
  readonly certificate: {
    readonly lifetimeMs: number
    /** The name of the issuer that signs: `built-in`, or an outside one. */
    readonly issuer: string
    /** A certificate of an outside issuer that lives shorter is not taken. Null: half of the lifetime. */
    readonly minLifetimeMs: number | null
    /** Renewal starts between these fractions of the lifetime; jitter only makes it earlier than the later one. */
    readonly renewFrom: number
    readonly renewTo: number
    readonly keyTypes: readonly KeyType[]
    /** `{id}` and `{domain}` are filled in from the registry. */
    readonly subject: { readonly cn: string; readonly o: string; readonly ou: string }
    /** False as document 001 demands: no subject alternative name. */
    readonly uriSan: boolean
    readonly aiaUrl: string | null
    readonly cdpUrl: string | null
  }
  readonly keyStorage: 'file' | 'memory' | 'tpm'
  /** What becomes of a caller with another key while the node is active (ruling 3). */
  readonly onActiveConflict: 'prove' | 'probe' | 'reject'
  /** Under `probe`: for how long the holder of an active identity has to be silent before another caller is admitted. */
  readonly probeSilenceMs: number
  /** How a node that lapsed to inactive comes back; `people` counts approvals. */
  readonly comeback: { readonly by: 'certificate' | 'join' | 'approve'; readonly people: number }
  readonly recovery: {
    readonly mode: 'auto' | 'approve' | 'deny'
    readonly limit: number
    readonly windowMs: number
    /** How often a healthy agent rehearses its recovery. */
    readonly rehearseEveryMs: number
  }
  /** Of two holders of one identity: the one with the live channel stays, or both are fenced (ruling 6). */
  readonly onDuplicate: 'keep-live' | 'fence'
  readonly wireguard: WireguardPolicy
  /** Leaves for the programs of its nodes (ruling 19). */
  readonly outputs: readonly Output[]
  /** Deleted: a tombstone, which a new one of the same name takes over. No node that is not revoked has it. */
  readonly deletedAtMs: number | null
}

/** What no agent can do yet: nothing joins under a profile that asks for it. */
export const unavailableMethods = ({ join }: Pick<Profile, 'join'>): readonly JoinMethod[] =>
  join.allOf.filter((method) => method === 'tpm')

/** Settings whose values promise what is not built yet. They are named wherever a profile is set or shown. */
export const profileWithoutEffect = (profile: Pick<Profile, 'join' | 'keyStorage'>): string[] => [
  ...(unavailableMethods(profile).length > 0 ? ['join.allOf'] : []),
  ...(profile.keyStorage === 'tpm' ? ['keyStorage'] : []),
]

/** The name of the authority of the domain itself, which signs where nothing else is named. No outside issuer has it. */
export const builtIn = 'built-in'

/** Profiles that a release before 0.7.0 has stored get it, too. */
export const signedHere = { issuer: builtIn, minLifetimeMs: null } as const

/** Profiles that 0.2.0 has stored get it, too. */
export const defaultProbeSilenceMs = 30_000

export const longestTokenTtlMs = 24 * 3_600_000
