// Keys of operators: named, since the name is what the journal remembers, and never all gone.

import { readOf, type Row } from './change.ts'
import { decided, entry, type Attribution, type Decided } from './decision.ts'
import type { OperatorKey, Role } from './principal.ts'
import { refuse, type Refusal } from './refusal.ts'

type KeyDecided = Decided & { readonly key: OperatorKey }

export type CreateKeyFacts = {
  readonly keyId: string
  readonly hash: string
  readonly name: string
  readonly role: Role
  /** All keys there are. */
  readonly existing: readonly Row<OperatorKey>[]
  readonly by: Attribution
  readonly nowMs: number
}

export const decideCreateKey = (facts: CreateKeyFacts): KeyDecided | Refusal => {
  const { keyId, hash, name, role, existing, by, nowMs } = facts
  if (existing.some(({ value }) => isLive(value) && value.name === name)) {
    return refuse('SETTING_INVALID', `a key named ${name} is in use; revoke it first or take another name`)
  }
  const key: OperatorKey = { id: keyId, name, role, hash, createdBy: by.actor, createdAtMs: nowMs, revokedAtMs: null }
  return {
    ...decided({
      reads: [readOf('operator-key', hash, null)],
      writes: [{ put: 'operator-key', value: key }],
      entries: [entry(by, nowMs, 'operator_key.created', {}, { key_id: keyId, name, role })],
    }),
    key,
  }
}

export type RevokeKeyFacts = {
  readonly key: Row<OperatorKey>
  readonly others: readonly Row<OperatorKey>[]
  readonly by: Attribution
  readonly nowMs: number
}

export const decideRevokeKey = ({ key, others, by, nowMs }: RevokeKeyFacts): KeyDecided | Refusal => {
  const { id, name, role, hash } = key.value
  if (!isLive(key.value)) return refuse('KEY_NOT_FOUND', `the key ${name} has been revoked already`)
  const admins = others.filter(({ value }) => value.hash !== hash && isLiveAdmin(value))
  if (isLiveAdmin(key.value) && admins.length === 0) return refuse('LAST_ADMIN_KEY')
  const revoked: OperatorKey = { ...key.value, revokedAtMs: nowMs }
  return {
    ...decided({
      // Two admins who revoke each other at once have to meet: each relied on the other's key.
      reads: [
        readOf('operator-key', hash, key),
        ...admins.map((admin) => readOf('operator-key', admin.value.hash, admin)),
      ],
      writes: [{ put: 'operator-key', value: revoked }],
      entries: [entry(by, nowMs, 'operator_key.revoked', {}, { key_id: id, name, role })],
    }),
    key: revoked,
  }
}

const isLive = (key: OperatorKey): boolean => key.revokedAtMs === null
const isLiveAdmin = (key: OperatorKey): boolean => isLive(key) && key.role === 'platform-admin'
