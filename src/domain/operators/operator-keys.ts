// Keys of operators: named, since the name is what the journal remembers, and never all gone.

import { readOf, type Row, decided, entry, type Attribution, type Decided } from '#domain/core/change.ts'
import type { OperatorKey, Role } from '#domain/core/principal.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isoTime } from '#platform/clock.ts'

type KeyDecided = Decided & { readonly key: OperatorKey }

/** The MAC of key rows, under a key the database does not have (operator-key-seal.ts). */
export type KeySeal = {
  seal(key: OperatorKey): OperatorKey
  /** Whether the row is as a plane of this domain wrote it. */
  isSealed(key: OperatorKey): boolean
  /** What the journal says of a key instead of its hash. */
  fingerprint(key: OperatorKey): string
}

/** The fingerprint binds the entry to the row: a name and a role fit any row. */
export const keyBody = (key: OperatorKey, { fingerprint }: Pick<KeySeal, 'fingerprint'>) => ({
  key_id: key.id,
  name: key.name,
  role: key.role,
  fingerprint: fingerprint(key),
  ...endOf(key),
})

/** A row that was written into the database by hand may lack it. */
const endOf = ({ expiresAtMs }: OperatorKey) =>
  typeof expiresAtMs === 'number' ? { expires_at: isoTime(expiresAtMs) } : {}

export type CreateKeyFacts = {
  readonly keyId: string
  readonly hash: string
  readonly name: string
  readonly role: Role
  /** Null: it has no end. */
  readonly expiresAtMs: number | null
  /** All keys there are. */
  readonly existing: readonly Row<OperatorKey>[]
  readonly keySeal: KeySeal
  readonly by: Attribution
  readonly nowMs: number
}

export const decideCreateKey = (facts: CreateKeyFacts): KeyDecided | Refusal => {
  const { keyId, hash, name, role, expiresAtMs, existing, keySeal, by, nowMs } = facts
  const named = existing.find(({ value }) => isLive(value) && value.name === name)?.value
  if (named !== undefined) {
    const state = isExpired(named, nowMs) ? 'has expired' : 'is in use'
    const why = `a key named ${name} ${state}; revoke it first (muster key revoke ${named.id}) or take another name`
    return refuseField('SETTING_INVALID', 'name', why)
  }
  if (expiresAtMs !== null && expiresAtMs <= nowMs)
    return refuseField('SETTING_INVALID', 'expires_at', `${isoTime(expiresAtMs)} is in the past`)
  const key = keySeal.seal({
    ...{ id: keyId, name, role, hash, createdBy: by.actor, createdAtMs: nowMs },
    ...{ revokedAtMs: null, expiresAtMs },
  })
  return {
    ...decided({
      reads: [readOf('operator-key', hash, null)],
      writes: [{ put: 'operator-key', value: key }],
      entries: [entry(by, nowMs, 'operator_key.created', {}, keyBody(key, keySeal))],
    }),
    key,
  }
}

export type RevokeKeyFacts = {
  readonly key: Row<OperatorKey>
  /** Only keys that grant something: a row that was written into the database by hand grants nothing. */
  readonly others: readonly Row<OperatorKey>[]
  readonly keySeal: KeySeal
  readonly by: Attribution
  readonly nowMs: number
}

export const decideRevokeKey = ({ key, others, keySeal, by, nowMs }: RevokeKeyFacts): KeyDecided | Refusal => {
  const { name, hash } = key.value
  if (!isLive(key.value)) return refuse('KEY_NOT_FOUND', `the key ${name} has been revoked already`)
  const admins = others.filter(({ value }) => value.hash !== hash && isLastingAdmin(value))
  if (isLastingAdmin(key.value) && admins.length === 0) return lastAdmin(others)
  const revoked = keySeal.seal({ ...key.value, revokedAtMs: nowMs })
  return {
    ...decided({
      // Two admins who revoke each other at once have to meet: each relied on the other's key.
      reads: [
        readOf('operator-key', hash, key),
        ...admins.map((admin) => readOf('operator-key', admin.value.hash, admin)),
      ],
      writes: [{ put: 'operator-key', value: revoked }],
      entries: [entry(by, nowMs, 'operator_key.revoked', {}, keyBody(key.value, keySeal))],
    }),
    key: revoked,
  }
}

const lastAdmin = (others: readonly Row<OperatorKey>[]): Refusal => {
  const expiring = others.filter(({ value }) => isLive(value) && value.role === 'platform-admin')
  return refuse('LAST_ADMIN_KEY', expiring.length === 0 ? null : 'the others expire: one without an end has to stay')
}

/** What the journal has said of keys, each entry proven by a signed head. */
export type KeyVoucher = {
  readonly type: 'operator_key.created' | 'operator_key.adopted' | 'operator_key.revoked'
  readonly atMs: number
  readonly actor: string
  readonly keyId: string
  readonly name: string
  readonly role: string
  /** Null: written by a release before 0.2.1, which named the key and not its hash. */
  readonly fingerprint: string | null
  /** Null: it has no end, or a release before 0.5 wrote it. */
  readonly expiresAtMs: number | null
}

/**
 * Whether the journal vouches for a live row that has no good MAC. Entries without a fingerprint vouch only until the key
 * is adopted: from then on the hash is in the store, and another one under the same name is not the key.
 */
export const journalVouches = (key: OperatorKey, fingerprint: string, said: readonly KeyVoucher[]): boolean => {
  const ofKey = said.filter(({ keyId }) => keyId === key.id)
  if (ofKey.some(({ type }) => type === 'operator_key.revoked')) return false
  const created = ofKey.find(({ type }) => type === 'operator_key.created')
  if (created === undefined) return false
  if (created.name !== key.name || created.role !== key.role) return false
  if (created.atMs !== key.createdAtMs || created.actor !== key.createdBy) return false
  // A row that lost its end together with its MAC is not the key.
  if (created.expiresAtMs !== (key.expiresAtMs ?? null)) return false
  const fingerprints = ofKey.flatMap((one) => one.fingerprint ?? [])
  return fingerprints.every((one) => one === fingerprint)
}

export type AdoptKeyFacts = {
  readonly key: Row<OperatorKey>
  readonly keySeal: KeySeal
  readonly by: Attribution
  readonly nowMs: number
}

export const decideAdoptKey = ({ key, keySeal, by, nowMs }: AdoptKeyFacts): KeyDecided => {
  const sealed = keySeal.seal(key.value)
  return {
    ...decided({
      reads: [readOf('operator-key', key.value.hash, key)],
      writes: [{ put: 'operator-key', value: sealed }],
      entries: [entry(by, nowMs, 'operator_key.adopted', {}, keyBody(sealed, keySeal))],
    }),
    key: sealed,
  }
}

const isLive = (key: OperatorKey): boolean => key.revokedAtMs === null
/** One that is there in a year as well: the others would leave a domain without an administrator when they end. */
const isLastingAdmin = (key: OperatorKey): boolean =>
  isLive(key) && key.role === 'platform-admin' && key.expiresAtMs === null

export const isExpired = ({ expiresAtMs }: Pick<OperatorKey, 'expiresAtMs'>, nowMs: number): boolean =>
  expiresAtMs !== null && nowMs >= expiresAtMs

/** How long before its end an alert is raised. A key that was made for less is meant to end soon. */
const warnedMs = 7 * 24 * 3_600_000

export const expiresSoon = ({ createdAtMs, expiresAtMs, revokedAtMs }: OperatorKey, nowMs: number): boolean =>
  revokedAtMs === null &&
  expiresAtMs !== null &&
  expiresAtMs - createdAtMs > warnedMs &&
  nowMs >= expiresAtMs - warnedMs &&
  nowMs < expiresAtMs
