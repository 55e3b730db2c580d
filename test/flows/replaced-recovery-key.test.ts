// A node replaces its recovery key with a renewal. The key that is replaced signs it, and stays good until the certificate that came with
// the new one is used: an answer may be lost.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { sha256Hex } from '#platform/bytes.ts'
import { generateKey, spkiHash, type PrivateKey } from '#pki/keys.ts'
import { recoveryProofBytes } from '#wire/core/statement.ts'
import { codeOf, evidenceOf, newCsr, setUpRecovery } from './recovery-setup.ts'

const evidence = evidenceOf('a')

const setUp = async (t: TestContext) => {
  const setup = await setUpRecovery(t)
  const former = generateKey('p256')
  const { counter } = await setup.recoverable('n1', former)
  const key = generateKey('p256')
  const replacing = (csr: string, signer: PrivateKey = former, of: PrivateKey = key) => {
    const registration = setup.registrationOf(of, csr, 'n1')
    assert(registration.kind === 'key')
    const about = { node: 'n1', challenge: registration.challenge, csrHash: sha256Hex(csr) }
    const bytes = recoveryProofBytes({ purpose: 'replace', ...about, counter: spkiHash(of.spki) })
    const proof = Buffer.from(signer.sign(bytes)).toString('base64url')
    return { ...registration, replaces: { public_key: Buffer.from(signer.spki).toString('base64'), proof } }
  }
  const replace = async () => {
    const csr = newCsr()
    const renewal = await setup.renew('n1', { csr, counter, recovery: replacing(csr), evidence })
    assert(renewal.kind === 'issued', JSON.stringify(renewal))
    return renewal
  }
  return { ...setup, former, key, counter, replacing, replace }
}

test('once its certificate is used, the new key recovers and the one before does not', async (t) => {
  const setup = await setUp(t)
  const renewal = await setup.replace()
  const [renewed] = await setup.entriesOf('renewal')
  assert.equal(renewed?.body['registered'], 'key')
  await setup.firstUse('n1')
  const counter = setup.counterOf(renewal)
  assert.equal(codeOf(await setup.recoverByKey(setup.former, 'n1', counter)), 'RECOVERY_UNKNOWN')
  assert.equal(codeOf(await setup.recoverByKey(setup.key, 'n1', counter)), 'issued')
})

test('a node that never got the answer recovers with the key it has, which is registered again', async (t) => {
  const setup = await setUp(t)
  await setup.replace()
  const recovered = await setup.recoverByKey(setup.former, 'n1', setup.counter)
  assert(recovered.kind === 'issued', JSON.stringify(recovered))
  await setup.firstUse('n1')
  const { recovery } = await setup.nodeNow('n1')
  assert(recovery?.credential.kind === 'key')
  assert.equal(recovery.credential.spki, spkiHash(setup.former.spki))
  assert.equal(recovery.credential.former, undefined)
})

test('without the proof of the key that is registered, nothing is replaced', async (t) => {
  const setup = await setUp(t)
  const before = (await setup.nodeNow('n1')).recovery
  const csr = newCsr()
  const stranger = generateKey('p256')
  const own = setup.replacing(csr)
  const forged = { ...own, replaces: { ...own.replaces, proof: setup.replacing(csr, stranger).replaces.proof } }
  assert.equal(codeOf(await setup.renew('n1', { csr, recovery: forged, evidence })), 'RECOVERY_UNKNOWN')
  const forAnother = { ...own, replaces: setup.replacing(csr, setup.former, stranger).replaces }
  assert.equal(codeOf(await setup.renew('n1', { csr, recovery: forAnother, evidence })), 'RECOVERY_UNKNOWN')
  // Of a key that it proves and that is not the registered one.
  const recovery = setup.replacing(csr, stranger)
  const renewal = await setup.renew('n1', { csr, counter: setup.counter, recovery, evidence })
  assert.equal(codeOf(renewal), 'issued')
  assert.deepEqual((await setup.nodeNow('n1')).recovery, before)
})
