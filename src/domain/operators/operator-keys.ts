// Keys of operators: named, since the name is what the journal remembers, and never all gone.

import { readOf, type Row, decided, entry, type Attribution, type Decided } from '#domain/core/change.ts'
import type { OperatorKey, Role } from '#domain/core/principal.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'

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
})

export type CreateKeyFacts = {
  readonly keyId: string
  readonly hash: string
  readonly name: string
  readonly role: Role
  /** All keys there are. */
  readonly existing: readonly Row<OperatorKey>[]
  readonly keySeal: KeySeal
  readonly by: Attribution
  readonly nowMs: number
}

export const decideCreateKey = (facts: CreateKeyFacts): KeyDecided | Refusal => {
  const { keyId, hash, name, role, existing, keySeal, by, nowMs } = facts
  if (existing.some(({ value }) => isLive(value) && value.name === name)) {
    return refuseField('SETTING_INVALID', 'name', `a key named ${name} is in use; revoke it first or take another name`)
  }
  const key = keySeal.seal({ id: keyId, name, role, hash, createdBy: by.actor, createdAtMs: nowMs, revokedAtMs: null })
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
  const admins = others.filter(({ value }) => value.hash !== hash && isLiveAdmin(value))
  if (isLiveAdmin(key.value) && admins.length === 0) return refuse('LAST_ADMIN_KEY')
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
const isLiveAdmin = (key: OperatorKey): boolean => isLive(key) && key.role === 'platform-admin'
