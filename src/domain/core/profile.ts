// A profile is policy as data: what a node of this kind may do, and how long things last.

import type { Output } from '#domain/programs/output.ts'
import { noWireguard, type WireguardPolicy } from './wireguard.ts'

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

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const muster = { o: '{domain}', ou: 'nodes' }
const every: readonly KeyType[] = keyTypes

/** The name of the authority of the domain itself, which signs where nothing else is named. No outside issuer has it. */
export const builtIn = 'built-in'

/** Profiles that a release before 0.7.0 has stored get it, too. */
export const signedHere = { issuer: builtIn, minLifetimeMs: null } as const

/** Profiles that 0.2.0 has stored get it, too. */
export const defaultProbeSilenceMs = 30_000

export const shippedProfiles: readonly Profile[] = [
  {
    name: 'gpu-cloud',
    description: 'GPU hosts with disks: a token bound to the node, a key in a file',
    join: { allOf: ['token'], tokenScope: 'node', tokenTtlMs: 30 * minute },
    certificate: {
      lifetimeMs: day,
      ...signedHere,
      renewFrom: 1 / 2,
      renewTo: 2 / 3,
      keyTypes: every,
      subject: { cn: 'node-{id}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'file',
    onActiveConflict: 'prove',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'certificate', people: 0 },
    recovery: { mode: 'auto', limit: 3, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'keep-live',
    wireguard: noWireguard,
    outputs: [],
    deletedAtMs: null,
  },
  {
    name: 'hpc-diskless',
    description: 'Diskless nodes of a trusted machine room: hardware identity, a key in memory',
    join: { allOf: ['hardware'], tokenScope: 'node', tokenTtlMs: 15 * minute },
    certificate: {
      lifetimeMs: 3 * day,
      ...signedHere,
      renewFrom: 0.6,
      renewTo: 2 / 3,
      keyTypes: every,
      subject: { cn: 'pact-service-agent/{id}@{domain}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'memory',
    onActiveConflict: 'probe',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'join', people: 0 },
    recovery: { mode: 'deny', limit: 0, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'keep-live',
    wireguard: noWireguard,
    outputs: [],
    deletedAtMs: null,
  },
  {
    name: 'mesh-paas',
    description: 'Hosts of a platform mesh: a token of the domain, an operator approves a return',
    join: { allOf: ['token'], tokenScope: 'domain', tokenTtlMs: hour },
    certificate: {
      lifetimeMs: 90 * day,
      ...signedHere,
      renewFrom: 0.6,
      renewTo: 2 / 3,
      keyTypes: every,
      subject: { cn: 'node-{id}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'file',
    onActiveConflict: 'prove',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'approve', people: 1 },
    recovery: { mode: 'approve', limit: 3, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'keep-live',
    wireguard: { ...noWireguard, mode: 'offered' },
    outputs: [],
    deletedAtMs: null,
  },
  {
    name: 'high-assurance',
    description:
      'Token and TPM, a key the TPM holds, two people approve a return (not usable yet: no agent uses a TPM)',
    join: { allOf: ['token', 'tpm'], tokenScope: 'node', tokenTtlMs: 15 * minute },
    certificate: {
      lifetimeMs: day,
      ...signedHere,
      renewFrom: 0.45,
      renewTo: 1 / 2,
      keyTypes: ['p256', 'p384'],
      subject: { cn: 'node-{id}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'tpm',
    onActiveConflict: 'prove',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'approve', people: 2 },
    recovery: { mode: 'approve', limit: 3, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'fence',
    wireguard: noWireguard,
    outputs: [],
    deletedAtMs: null,
  },
]

export const longestTokenTtlMs = 24 * hour
