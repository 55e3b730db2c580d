import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused, readsOf } from '../../../test/fakes/expect-decision.ts'
import {
  decideCreateKey,
  decideRevokeKey,
  expiresSoon,
  isExpired,
  journalVouches,
  type KeySeal,
  type KeyVoucher,
} from './operator-keys.ts'
import type { OperatorKey, Role } from '#domain/core/principal.ts'
import { alice, hour, noonMs, row } from '../../../test/fakes/sample-rows.ts'

const keySeal: KeySeal = {
  seal: (key) => ({ ...key, mac: `mac of ${key.id}` }),
  isSealed: () => true,
  fingerprint: ({ name }) => `print of ${name}`,
}
const key = (name: string, role: Role, revokedAtMs: number | null = null, expiresAtMs: number | null = null) =>
  row<OperatorKey>({
    id: `id-${name}`,
    name,
    role,
    hash: `hash-${name}`,
    createdBy: 'system:first-run',
    createdAtMs: 0,
    revokedAtMs,
    expiresAtMs,
  })
const create = {
  keyId: 'id-new',
  hash: 'hash-new',
  name: 'dora',
  role: 'operator',
  expiresAtMs: null,
  keySeal,
  by: alice,
  nowMs: noonMs,
} as const

test('a key is created under a name no live key has, and its hash is not in the journal', () => {
  const verdict = expectDecided(decideCreateKey({ ...create, existing: [key('dora', 'viewer', 5)] }))
  assert.equal(verdict.key.role, 'operator')
  assert.deepEqual(readsOf(verdict), ['operator-key/hash-new@0'])
  assert.ok(!JSON.stringify(verdict.change.entries).includes('hash-new'))
  expectRefused(decideCreateKey({ ...create, existing: [key('dora', 'viewer')] }), 'SETTING_INVALID', /named dora/)
})

test('the last platform-admin key cannot be revoked; revoked ones do not count', () => {
  const admin = key('root', 'platform-admin')
  const others = [key('olga', 'operator'), key('gone', 'platform-admin', 5), admin]
  expectRefused(decideRevokeKey({ key: admin, others, keySeal, by: alice, nowMs: noonMs }), 'LAST_ADMIN_KEY')
})

test('a key that expires is made with an end in the future, which the journal names', () => {
  const verdict = expectDecided(decideCreateKey({ ...create, expiresAtMs: noonMs + hour, existing: [] }))
  assert.equal(verdict.key.expiresAtMs, noonMs + hour)
  assert.equal(verdict.change.entries[0].body['expires_at'], '2030-01-01T13:00:00.000Z')
  expectRefused(decideCreateKey({ ...create, expiresAtMs: noonMs, existing: [] }), 'SETTING_INVALID', /in the past/)
  const expired = key('dora', 'operator', null, noonMs)
  expectRefused(decideCreateKey({ ...create, existing: [expired] }), 'SETTING_INVALID', /expired.*key revoke id-dora/)
})

test('an admin key without an end stays, whichever others expire', () => {
  const [lasting, expiring] = [key('root', 'platform-admin'), key('ada', 'platform-admin', null, noonMs + hour)]
  const facts = { others: [lasting, expiring], keySeal, by: alice, nowMs: noonMs }
  expectRefused(decideRevokeKey({ ...facts, key: lasting }), 'LAST_ADMIN_KEY', /the others expire/)
  assert.equal(expectDecided(decideRevokeKey({ ...facts, key: expiring })).key.revokedAtMs, noonMs)
})

test('a key grants nothing from its end on; operators are told a week before, unless it was made for less', () => {
  const made = (expiresAtMs: number | null, revokedAtMs: number | null = null) =>
    key('ada', 'operator', revokedAtMs, expiresAtMs).value
  assert.deepEqual(
    [hour - 1, hour].map((nowMs) => isExpired(made(hour), nowMs)),
    [false, true],
  )
  assert.equal(isExpired(made(null), Number.MAX_SAFE_INTEGER), false)
  const month = 30 * 24 * hour
  const soon = [month - 8 * 24 * hour, month - 7 * 24 * hour, month - 1, month].map((at) =>
    expiresSoon(made(month), at),
  )
  assert.deepEqual(soon, [false, true, true, false])
  assert.deepEqual([expiresSoon(made(hour), 1), expiresSoon(made(month, 5), month - 1)], [false, false])
})

test('revoking an admin relies on the other admins, so two cannot revoke each other at once', () => {
  const others = [key('olga', 'operator'), key('ada', 'platform-admin')]
  const admin = key('root', 'platform-admin')
  const verdict = expectDecided(decideRevokeKey({ key: admin, others, keySeal, by: alice, nowMs: noonMs }))
  assert.equal(verdict.key.revokedAtMs, noonMs)
  assert.deepEqual(readsOf(verdict), ['operator-key/hash-root@7', 'operator-key/hash-ada@7'])
})

test('a key of another role is revoked once, whichever keys are left', () => {
  const verdict = expectDecided(
    decideRevokeKey({ key: key('olga', 'operator'), others: [], keySeal, by: alice, nowMs: noonMs }),
  )
  assert.deepEqual(verdict.change.entries[0].body, {
    ...{ key_id: 'id-olga', name: 'olga', role: 'operator' },
    fingerprint: 'print of olga',
  })
  const gone = key('olga', 'operator', 5)
  expectRefused(
    decideRevokeKey({ key: gone, others: [], keySeal, by: alice, nowMs: noonMs }),
    'KEY_NOT_FOUND',
    /already/,
  )
})

const voucher = (type: KeyVoucher['type'], name: string, more: Partial<KeyVoucher> = {}): KeyVoucher => ({
  ...{ type, atMs: 0, actor: 'system:first-run', keyId: `id-${name}`, name, role: 'operator' },
  ...{ fingerprint: null, expiresAtMs: null },
  ...more,
})

test('R3: the journal vouches for a key by its id, name, role, maker and time, and for no other row', () => {
  const { value } = key('olga', 'operator')
  const said = [voucher('operator_key.created', 'olga')]
  assert.equal(journalVouches(value, 'print', said), true)
  assert.equal(journalVouches(value, 'print', []), false)
  assert.equal(journalVouches({ ...value, role: 'platform-admin' }, 'print', said), false)
  assert.equal(journalVouches({ ...value, name: 'other' }, 'print', said), false)
  assert.equal(journalVouches({ ...value, createdAtMs: 1 }, 'print', said), false)
  assert.equal(journalVouches({ ...value, createdBy: 'operator:eve' }, 'print', said), false)
  const expiring = [voucher('operator_key.created', 'olga', { expiresAtMs: 9 })]
  assert.equal(journalVouches({ ...value, expiresAtMs: 9 }, 'print', expiring), true)
  assert.equal(journalVouches(value, 'print', expiring), false, 'a row that lost its end')
})

test('R3: a key that the journal says is revoked, or knows by another hash, is not vouched for', () => {
  const { value } = key('olga', 'operator')
  const created = voucher('operator_key.created', 'olga')
  const fingerprint = 'print'
  const adopted = voucher('operator_key.adopted', 'olga', { fingerprint })
  assert.equal(journalVouches(value, 'print', [created, adopted]), true)
  assert.equal(journalVouches(value, 'another', [created, adopted]), false)
  assert.equal(journalVouches(value, 'another', [{ ...created, fingerprint }]), false)
  assert.equal(journalVouches(value, 'print', [created, voucher('operator_key.revoked', 'olga')]), false)
})
