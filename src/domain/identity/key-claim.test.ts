import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectRefused } from '../../../test/fakes/expect-decision.ts'
import { keyRecovery, memberships, nodeRow, noonMs, row, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { keyInUse, keysClaimed, noKeyClaims, type KeyOwner, type KeyInUseFacts } from './key-claim.ts'

const claim = (spki: string, ...holders: readonly (readonly [node: string, use: KeyOwner['use']])[]) =>
  row({ spki, holders: holders.map(([node, use]) => ({ node, use, sinceMs: noonMs })) }, 2)

const recoveryKey = { kind: 'key', spki: 'r1', publicKey: 'cHVibGlj' } as const

const facts = (changes: Partial<KeyInUseFacts> = {}): KeyInUseFacts => ({
  nodeId: 'gpu-001',
  node: nodeRow('active').value,
  spki: 'k1',
  register: null,
  claims: noKeyClaims,
  ...changes,
})

const inUse = (changes: Partial<KeyInUseFacts>) => keyInUse(facts(changes)) ?? { kind: 'free' }

test('a key that another node has is not certified, whatever that node uses it for', () => {
  assert.equal(keyInUse(facts()), null)
  for (const use of ['tls', 'recovery'] as const) {
    const claims = { ...noKeyClaims, certified: claim('k1', ['gpu-002', use]) }
    expectRefused(inUse({ claims }), 'KEY_IN_USE', /^SHA256:k1$/)
    expectRefused(inUse({ claims, node: null }), 'KEY_IN_USE')
  }
})

test('an earlier key of the node itself is refused, but for one whose certificate was never used', () => {
  const claims = { ...noKeyClaims, certified: claim('k1', ['gpu-001', 'tls']) }
  expectRefused(inUse({ claims }), 'KEY_IN_USE', /an earlier key of this node/)
  const unused = slots({ current: slot('a1', { spki: 'k1' }) })
  const enrolled = nodeRow('enrolled', { membership: { ...memberships.enrolled, slots: unused } }).value
  assert.equal(keyInUse(facts({ claims, node: enrolled })), null)
  const active = nodeRow('active', { membership: { ...memberships.active, slots: unused } }).value
  expectRefused(inUse({ claims: noKeyClaims, node: active }), 'KEY_IN_USE')
  const pending = slots({ pending: slot('b1', { spki: 'k1' }) })
  const renewing = nodeRow('active', { membership: { ...memberships.active, slots: pending } }).value
  assert.equal(keyInUse(facts({ claims, node: renewing })), null)
  expectRefused(
    inUse({ spki: 'recovery-key', node: nodeRow('active', { recovery: keyRecovery() }).value }),
    'KEY_IN_USE',
  )
})

test('a recovery key is not registered where it is banned, where another node has it, or where it was certified', () => {
  const register = recoveryKey
  const registered = (...holders: Parameters<typeof claim>[1][]) =>
    inUse({ register, claims: { ...noKeyClaims, registered: claim('r1', ...holders) } })
  assert.equal(registered(['gpu-001', 'recovery']).kind, 'free')
  expectRefused(registered(['gpu-002', 'recovery']), 'KEY_IN_USE', /^the recovery key SHA256:r1$/)
  expectRefused(registered(['gpu-001', 'tls']), 'KEY_IN_USE', /^the recovery key/)
  const certified = slots({ current: slot('a1', { spki: 'r1' }) })
  const node = nodeRow('active', { membership: { ...memberships.active, slots: certified } }).value
  expectRefused(inUse({ register, node }), 'KEY_IN_USE', /^the recovery key/)
  const registeredBan = row({ spki: 'r1', why: 'stolen', atMs: noonMs })
  expectRefused(inUse({ register, claims: { ...noKeyClaims, registeredBan } }), 'KEY_BLOCKED')
})

test('a claim is compared and written with the certificate; one that names the holder already is only compared', () => {
  const claimed = (changes: Partial<KeyInUseFacts>, registered = false) => {
    const recovery = registered ? keyRecovery({ credential: { ...recoveryKey, registeredAtMs: noonMs } }) : null
    const { reads, writes } = keysClaimed({ ...facts(changes), recovery, nowMs: noonMs })
    return { reads: reads.map(({ row: kind, key, version }) => `${kind} ${key} ${version}`), writes }
  }
  const tls: KeyOwner = { node: 'gpu-001', use: 'tls', sinceMs: noonMs }
  assert.deepEqual(claimed({}), {
    reads: ['key-claim k1 0'],
    writes: [{ put: 'key-claim', value: { spki: 'k1', holders: [tls] } }],
  })
  const again = { ...noKeyClaims, certified: claim('k1', ['gpu-001', 'tls']) }
  assert.deepEqual(claimed({ claims: again }), { reads: ['key-claim k1 2'], writes: [] })
  const withRecovery = claimed({ register: recoveryKey }, true)
  assert.deepEqual(withRecovery.reads, ['key-claim k1 0', 'key-claim r1 0', 'key-ban r1 0'])
  assert.deepEqual(withRecovery.writes.at(-1), {
    put: 'key-claim',
    value: { spki: 'r1', holders: [{ ...tls, use: 'recovery' }] },
  })
  assert.deepEqual(
    claimed({ register: recoveryKey }).reads,
    ['key-claim k1 0'],
    'the profile has not let it be registered',
  )
})
