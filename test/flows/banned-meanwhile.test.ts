// A5: a key is banned after a renewal or recovery has been decided and before it is committed. The ban comes with the
// revocation of another node that had the same key, so the node that asks is not written and only the ban shows it.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { readOf, entry } from '#domain/core/change.ts'
import { generateKey, spkiHash } from '#pki/keys.ts'
import { codeOf, setUpRecovery } from './recovery-setup.ts'

/** Whatever is signed next, this key is banned before the signature is there. */
const banWhileSigning = (setup: Awaited<ReturnType<typeof setUpRecovery>>, spki: string): void => {
  const { issuer } = setup.deps
  let banned = false
  setup.deps.issuer = {
    ...issuer,
    async sign(order) {
      const issued = await issuer.sign(order)
      if (banned) return issued
      banned = true
      const by = { actor: 'operator:test', source: null, correlation: null }
      const outcome = await setup.store.commit({
        reads: [readOf('key-ban', spki, null)],
        writes: [{ put: 'key-ban', value: { spki, why: 'stolen', atMs: setup.clock.nowMs() } }],
        entries: [entry(by, setup.clock.nowMs(), 'host.revoked', { node: 'other' }, {})],
      })
      assert.notEqual(outcome, 'lost-race')
      return issued
    },
  }
}

const setUp = async (t: TestContext) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const { counter } = await setup.recoverable('n1', key)
  return { setup, key, counter }
}

test('A5: a recovery whose recovery key is banned before its commit is refused, and nothing is issued', async (t) => {
  const { setup, key, counter } = await setUp(t)
  banWhileSigning(setup, spkiHash(key.spki))
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'RECOVERY_DENIED')
  assert.equal((await setup.nodeNow('n1')).epoch, 1)
  assert.deepEqual(await setup.journal('node.recovered'), [])
})

test('A5: a renewal whose caller holds a key that is banned before its commit is refused, and nothing is issued', async (t) => {
  const { setup } = await setUp(t)
  const { membership } = await setup.nodeNow('n1')
  assert(membership.kind === 'active')
  banWhileSigning(setup, membership.slots.current.spki)
  assert.equal(codeOf(await setup.renew('n1')), 'CLIENT_CERT_DENIED')
  assert.equal((await setup.nodeNow('n1')).counter, 1)
  assert.deepEqual(await setup.journal('node.renewed'), [])
})
