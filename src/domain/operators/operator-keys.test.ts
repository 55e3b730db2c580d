import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectDecided, expectRefused, readsOf } from '../../../test/fakes/expect-decision.ts'
import { decideCreateKey, decideRevokeKey, journalVouches, type KeySeal, type KeyVoucher } from './operator-keys.ts'
import type { OperatorKey, Role } from '#domain/core/principal.ts'
import { alice, noonMs, row } from '../../../test/fakes/sample-rows.ts'

const keySeal: KeySeal = {
  seal: (key) => ({ ...key, mac: `mac of ${key.id}` }),
  isSealed: () => true,
  fingerprint: ({ name }) => `print of ${name}`,
}
const key = (name: string, role: Role, revokedAtMs: number | null = null) =>
  row<OperatorKey>({
    id: `id-${name}`,
    name,
    role,
    hash: `hash-${name}`,
    createdBy: 'system:first-run',
    createdAtMs: 0,
    revokedAtMs,
  })
const create = {
  keyId: 'id-new',
  hash: 'hash-new',
  name: 'dora',
  role: 'operator',
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
  ...{ type, atMs: 0, actor: 'system:first-run', keyId: `id-${name}`, name, role: 'operator', fingerprint: null },
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
