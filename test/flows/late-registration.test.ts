// A node that has nothing to recover with, because its agent or its plane knew no recovery when it enrolled or because an
// operator's decision took it away, registers it with a renewal.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { readOf, entry } from '#domain/core/change.ts'
import { generateKey } from '#pki/keys.ts'
import { renewCertificate } from '#plane/identity/renew-certificate.ts'
import { settleNode } from '#plane/node/operator-node-actions.ts'
import { operator } from './authority-setup.ts'
import { codeOf, evidenceOf, newCsr, setUpRecovery } from './recovery-setup.ts'

const evidence = evidenceOf('a')

/** Active, and enrolled without a word about recovery. */
const enrolledBefore = async (t: TestContext) => {
  const setup = await setUpRecovery(t)
  const outcome = await setup.enroll(await setup.invite('n1'), newCsr(), null)
  assert(outcome.kind === 'issued', JSON.stringify(outcome))
  await setup.firstUse('n1')
  assert.equal((await setup.nodeNow('n1')).recovery, null)
  return { ...setup, counter: setup.counterOf(outcome) }
}

test('a key that is proven with a renewal is what the node recovers with from then on', async (t) => {
  const setup = await enrolledBefore(t)
  const key = generateKey('p256')
  const csr = newCsr()
  const recovery = setup.registrationOf(key, csr, 'n1')
  const renewal = await setup.renew('n1', { csr, counter: setup.counter, recovery, evidence })
  assert(renewal.kind === 'issued', JSON.stringify(renewal))
  assert.deepEqual(
    (await setup.entriesOf('renewal')).map(({ type, body }) => [type, body['registered']]),
    [['node.renewed', 'key']],
  )
  await setup.firstUse('n1')
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', setup.counterOf(renewal))), 'issued')
})

test('it counts only for this request, on a challenge made for this node', async (t) => {
  const setup = await enrolledBefore(t)
  const key = generateKey('p256')
  const csr = newCsr()
  const asked = async (recovery: ReturnType<typeof setup.registrationOf>) =>
    codeOf(await setup.renew('n1', { csr, recovery, evidence }))
  for (const node of ['n2', null]) assert.equal(await asked(setup.registrationOf(key, csr, node)), 'CHALLENGE_INVALID')
  assert.equal(await asked(setup.registrationOf(key, newCsr(), 'n1')), 'RECOVERY_UNKNOWN')
  const late = setup.registrationOf(key, csr, 'n1')
  setup.clock.advance(61_000)
  assert.equal(await asked(late), 'CHALLENGE_INVALID')
  assert.equal((await setup.nodeNow('n1')).counter, 1)
  assert.equal((await setup.nodeNow('n1')).recovery, null)
})

test('repeated with another challenge it is answered the same and registers nothing twice; another key is ignored', async (t) => {
  const setup = await enrolledBefore(t)
  const key = generateKey('p256')
  const csr = newCsr()
  const principal = await setup.principal('n1')
  const call = () => ({
    ...{ csr, counter: setup.counter, issuerRoots: null, evidence, correlation: 'renewal' },
    recovery: setup.registrationOf(key, csr, 'n1'),
  })
  const first = await renewCertificate(setup.deps, setup.deps, principal, call())
  const registered = (await setup.nodeNow('n1')).recovery
  const again = await renewCertificate(setup.deps, setup.deps, principal, call())
  assert(first.kind === 'issued' && again.kind === 'issued')
  assert.equal(again.certificate.der, first.certificate.der)
  assert.deepEqual((await setup.nodeNow('n1')).recovery, registered)
  await setup.firstUse('n1')

  const next = newCsr()
  const other = setup.registrationOf(generateKey('p256'), next, 'n1')
  const renewal = await setup.renew('n1', { csr: next, counter: setup.counterOf(first), recovery: other, evidence })
  assert.equal(codeOf(renewal), 'issued')
  assert.deepEqual((await setup.nodeNow('n1')).recovery, registered)
})

test('a bearer token is given with the renewal that asks for one', async (t) => {
  const setup = await enrolledBefore(t)
  const renewal = await setup.renew('n1', { recovery: { kind: 'bearer' }, counter: setup.counter, evidence })
  assert(renewal.kind === 'issued')
  const token = setup.tokenOf(renewal)
  assert(token !== null)
  await setup.firstUse('n1')
  const call = { node: 'n1', counter: setup.counterOf(renewal), csr: newCsr() }
  assert.equal(codeOf(await setup.recover({ ...call, credential: { kind: 'bearer', token } })), 'issued')
})

test('what a copy held too is worth nothing once an operator has settled who is right, and the right one registers another', async (t) => {
  const setup = await setUpRecovery(t)
  const copied = generateKey('p256')
  const { counter } = await setup.recoverable('n1', copied)
  const row = await setup.store.get('node', 'n1')
  assert(row !== null)
  const duplicate = { name: 'duplicate_identity', sinceMs: 0, reason: 'two', evidence: {} } as const
  await setup.store.commit({
    reads: [readOf('node', 'n1', row)],
    writes: [{ put: 'node', value: { ...row.value, conditions: [duplicate] } }],
    entries: [entry(operator, 0, 'node.second_holder', { node: 'n1' })],
  })
  const channels = { isConnected: async () => true }
  const settled = await settleNode(setup.deps, channels, 'n1', 'the copy was wiped', operator)
  assert.notEqual(settled.kind, 'refused', JSON.stringify(settled))
  assert.equal(codeOf(await setup.recoverByKey(copied, 'n1', counter)), 'RECOVERY_UNKNOWN')

  const fresh = generateKey('p256')
  const csr = newCsr()
  const recovery = setup.registrationOf(fresh, csr, 'n1')
  const renewal = await setup.renew('n1', { csr, counter, recovery, evidence })
  assert(renewal.kind === 'issued')
  await setup.firstUse('n1')
  assert.equal(codeOf(await setup.recoverByKey(copied, 'n1', setup.counterOf(renewal))), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await setup.recoverByKey(fresh, 'n1', setup.counterOf(renewal))), 'issued')
})
