// A machine enrolls again: by proving the key of the certificate it has (ruling 23), with a token that was used, and on other hardware
// than before. On a real store.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { changeNode } from '#plane/node/operator-node-actions.ts'
import { operator } from './authority-setup.ts'
import { codeOf, evidenceOf, newCsr, setUpRecovery } from './recovery-setup.ts'

/** An active node with nothing to recover by, whose machine has its certificate's key and counter. */
const setUpActive = async (t: TestContext) => {
  const setup = await setUpRecovery(t)
  // From before it was active: for an active node only tokens with --replace are made.
  const tokens = [await setup.invite('n1'), await setup.invite('n1'), await setup.invite('n1')]
  const invitation = (): string => tokens.shift() ?? assert.fail('no token is left')
  const key = generateKey('p256')
  const outcome = await setup.enroll(invitation(), makeCsr(key, 'any'), null)
  assert(outcome.kind === 'issued', JSON.stringify(outcome))
  await setup.firstUse('n1')
  const held = { key, counter: setup.counterOf(outcome) }
  /** With a token that does not replace, and the key of a certificate. */
  const prove = async (by: { readonly key: PrivateKey; readonly counter: string }, node = 'n1') => {
    const csr = newCsr()
    const identityProof = setup.identityProofOf(by.key, { node, csr, counter: by.counter })
    return setup.enroll(invitation(), csr, null, { identityProof, evidence: evidenceOf('b') })
  }
  /** The next certificate, in use. */
  const renew = async () => {
    const next = generateKey('p256')
    const renewed = await setup.renew('n1', { csr: makeCsr(next, 'any'), evidence: evidenceOf('a') })
    assert(renewed.kind === 'issued', JSON.stringify(renewed))
    return { key: next, counter: setup.counterOf(renewed) }
  }
  const conditions = async () => (await setup.nodeNow('n1')).conditions.map(({ name }) => name)
  return { ...setup, held, invitation, prove, renew, conditions }
}

test('ruling 23: the key of the current certificate lets its machine enroll while the node is active, and raises nothing', async (t) => {
  const { held, prove, nodeNow, conditions, journal } = await setUpActive(t)
  const outcome = await prove(held)
  assert(outcome.kind === 'issued', JSON.stringify(outcome))
  assert.equal((await nodeNow('n1')).epoch, 2)
  assert.deepEqual(await conditions(), [])
  const [superseded] = await journal('node.superseded')
  assert.equal(superseded?.body['proven_by'], 'certificate key')
})

test('ruling 23: the key of a pending certificate lets it in as well, with the counter that came with it', async (t) => {
  const { prove, renew, nodeNow } = await setUpActive(t)
  assert.equal(codeOf(await prove(await renew())), 'issued')
  assert.equal((await nodeNow('n1')).epoch, 2)
})

test('ruling 23: the current key with an older counter is a copy as well', async (t) => {
  const { prove, renew, held, firstUse, nodeNow, conditions } = await setUpActive(t)
  const next = await renew()
  await firstUse('n1')
  assert.equal(codeOf(await prove({ ...next, counter: held.counter })), 'DUPLICATE_IDENTITY')
  assert.deepEqual([(await nodeNow('n1')).epoch, await conditions()], [1, ['duplicate_identity']])
})

test('ruling 23: an earlier key is a copy: refused, named in an alert, and the node keeps its identity', async (t) => {
  const { held, prove, renew, firstUse, nodeNow, conditions } = await setUpActive(t)
  const next = await renew()
  await firstUse('n1')
  assert.equal(codeOf(await prove(held)), 'DUPLICATE_IDENTITY')
  const node = await nodeNow('n1')
  assert.deepEqual([node.epoch, node.membership.kind], [1, 'active'])
  assert.deepEqual(await conditions(), ['duplicate_identity'])
  assert.match(node.conditions[0]?.reason ?? '', /an earlier key of this node/)
  // From here on not even the newest key is proof, until an operator has settled it.
  assert.equal(codeOf(await prove(next)), 'DUPLICATE_IDENTITY')
})

test('ruling 23: two processes with the same key: the one that answers on its channel stays', async (t) => {
  const { live, held, prove, conditions } = await setUpActive(t)
  live.holder = { evidence: evidenceOf('a'), source: '192.0.2.8', serial: 'ab' }
  assert.equal(codeOf(await prove(held)), 'DUPLICATE_IDENTITY')
  assert.deepEqual(await conditions(), ['duplicate_identity'])
})

test('a proof that proves nothing leaves everything as without it', async (t) => {
  const { held, invitation, prove, enroll, identityProofOf, challenge, clock, conditions } = await setUpActive(t)
  const csr = newCsr()
  const secret = invitation()
  const proof = identityProofOf(held.key, { node: 'n1', csr, counter: held.counter })
  const ask = async (identityProof: typeof proof, asked = csr) =>
    codeOf(await enroll(secret, asked, null, { identityProof }))
  // For another request, by another key, for another node.
  assert.equal(await ask(proof, newCsr()), 'ALREADY_ACTIVE')
  assert.equal(codeOf(await prove({ ...held, key: generateKey('p256') })), 'ALREADY_ACTIVE')
  const other = identityProofOf(held.key, { node: 'n1', csr, counter: held.counter }, challenge('n2'))
  assert.equal(await ask(other), 'REQUEST_INVALID')
  assert.equal(
    await ask(identityProofOf(held.key, { node: 'n1', csr, counter: held.counter }, challenge(null))),
    'CHALLENGE_INVALID',
  )
  assert.deepEqual(await conditions(), ['spoof_suspected'])
  clock.advance(61_000)
  assert.equal(await ask(proof), 'CHALLENGE_INVALID')
})

test('quarantined and revoked nodes are let in by no key', async (t) => {
  const { held, prove, deps, store } = await setUpActive(t)
  const row = await store.get('node', 'n1')
  assert(row !== null && row.value.membership.kind === 'active')
  const { slots, sinceMs } = row.value.membership
  const membership = { kind: 'quarantined', sinceMs, slots, reason: 'odd', by: operator.actor } as const
  await store.commit({
    reads: [{ row: 'node', key: 'n1', version: row.version }],
    writes: [{ put: 'node', value: { ...row.value, membership } }],
    entries: [
      {
        type: 'node.quarantined',
        atMs: 0,
        body: {},
        ...operator,
        node: 'n1',
        epoch: 1,
        token: null,
        issuer: null,
        serial: null,
      },
    ],
  })
  assert.equal(codeOf(await prove(held)), 'NODE_QUARANTINED')
  assert.equal((await deps.store.get('node', 'n1'))?.value.membership.kind, 'quarantined')
})

test('X5: a used token that comes back with another key raises one alert; its own key gets its answer and raises none', async (t) => {
  const setup = await setUpRecovery(t)
  const secret = await setup.invite('n1')
  const csr = newCsr()
  assert.equal(codeOf(await setup.enroll(secret, csr, null)), 'issued')
  assert.equal(codeOf(await setup.enroll(secret, csr, null)), 'issued')
  const alerts = async () =>
    (await setup.store.alerts({ unresolvedOnly: true, after: null, limit: 10 })).map(({ value }) => value)
  assert.deepEqual(await alerts(), [])
  const thieves = await Promise.all(Array.from({ length: 3 }, () => setup.enroll(secret, newCsr(), null)))
  assert.deepEqual(thieves.map(codeOf), ['TOKEN_USED', 'TOKEN_USED', 'TOKEN_USED'])
  const [alert, ...more] = await alerts()
  assert.deepEqual([alert?.kind, alert?.node, more.length], ['token_reused', 'n1', 0])
  assert.match(alert?.reason ?? '', /which n1 has used, came back with another key from 192\.0\.2\.9/)
  assert.equal((await setup.journal('alert.raised')).length, 1)
})

test('R-010: a token-joined machine recovers on the hardware it enrolled with; elsewhere people decide', async (t) => {
  const setup = await setUpRecovery(t)
  const key = generateKey('p256')
  const csr = newCsr()
  const hardware = { macs: ['02:00:00:00:00:09'], bmcSerial: null }
  const enrolled = await setup.enroll(await setup.invite('n1'), csr, setup.registrationOf(key, csr), { hardware })
  assert(enrolled.kind === 'issued', JSON.stringify(enrolled))
  await setup.firstUse('n1')
  const on = (mac: string) => ({ evidence: { ...evidenceOf('a'), hardware: { macs: [mac], bmc_serial: null } } })
  const counter = setup.counterOf(enrolled)
  const rehearsed = await setup.rehearse({
    ...{ node: 'n1', counter, credential: setup.keyCredential(key, { node: 'n1', csr: null, counter }) },
    ...on('02:00:00:00:00:01'),
  })
  assert.deepEqual('step' in rehearsed && [rehearsed.step, rehearsed.why], ['budget', 'APPROVAL_REQUIRED'])
  const moved = await setup.recoverByKey(key, 'n1', counter, newCsr(), on('02:00:00:00:00:01'))
  assert.equal(codeOf(moved), 'APPROVAL_REQUIRED')
  const { conditions } = await setup.nodeNow('n1')
  assert.match(conditions.find(({ name }) => name === 'needs_approval')?.reason ?? '', /other hardware/)
  const here = await setup.recoverByKey(key, 'n1', counter, newCsr(), on('02:00:00:00:00:09'))
  assert(here.kind === 'issued', JSON.stringify(here))
  await setup.firstUse('n1')
  const again = setup.counterOf(here)
  assert.equal(
    codeOf(await setup.recoverByKey(key, 'n1', again, newCsr(), on('02:00:00:00:00:01'))),
    'APPROVAL_REQUIRED',
  )
  assert.equal((await changeNode(setup.deps, 'n1', 'approve', operator)).kind, 'committed')
  const approved = await setup.recoverByKey(key, 'n1', again, newCsr(), on('02:00:00:00:00:01'))
  assert(approved.kind === 'issued', JSON.stringify(approved))
  assert.deepEqual((await setup.nodeNow('n1')).reportedHardware?.macs, ['02:00:00:00:00:01'])
})
