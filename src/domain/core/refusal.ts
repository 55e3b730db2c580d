// A refusal is an expected no: a closed code (refusal-table.ts), a sentence, and what to do next. It is a
// value, never thrown.

import type { HardwareIdentity } from './node.ts'
import type { KeyType } from './profile.ts'
import type { RefusalCode } from './refusal-table.ts'

export type InForceHere = {
  /** Names of the replicas that do not know of it. */
  readonly unaware: readonly string[]
  /** Where the order survives: `memory` is lost with the process. */
  readonly kept: 'data folder' | 'memory'
}

/** The part of a request that is at fault. */
export type OffendingField = {
  /** Through the body or the query: `wireguard.public_key`. */
  readonly path: string
  /** This plane does not know it: the caller is of a later release, or misspelt it. */
  readonly unknown: boolean
}

export type Refusal = {
  readonly kind: 'refused'
  readonly code: RefusalCode
  /** What exactly was wrong, for this caller; safe to show, bounded. */
  readonly detail: string | null
  readonly retryAfterMs: number | null
  /** Where one field is at fault. */
  readonly field?: OffendingField
  /** Where the key in the request is of another type: the types that the profile allows. */
  readonly keyTypes?: readonly KeyType[]
  /** It was refused, and what was ordered is in force at this replica all the same. */
  readonly inForceHere?: InForceHere
  /** Whom it concerns, where the caller's own credential says so: for the journal, and to fill in the next step. */
  readonly about?: {
    readonly node?: string | null
    readonly token?: string | null
    /** The task that is in the way. */
    readonly task?: string
    readonly actor?: string
    /** Of the story it belongs to, where that is not the call's own. */
    readonly correlation?: string
    /** The hardware that the caller showed: without it an operator could not know which machine was refused. */
    readonly hardware?: HardwareIdentity
    /** Whose rules refused it. */
    readonly profile?: string
    /** It was committed with what it changed. */
    readonly journaled?: boolean
  }
}

export const refuse = (code: RefusalCode, detail: string | null = null): Refusal => ({
  kind: 'refused',
  code,
  detail,
  retryAfterMs: null,
})

export const refuseField = (code: RefusalCode, path: string, detail: string | null = null): Refusal => ({
  ...refuse(code, detail),
  field: { path, unknown: false },
})

export const refuseMethod = (profile: string, why: string): Refusal => ({
  ...refuse('JOIN_METHOD_NOT_ALLOWED', `profile ${profile} ${why}`),
  about: { profile },
})

export const isRefusal = (value: unknown): value is Refusal =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'refused' && 'code' in value
