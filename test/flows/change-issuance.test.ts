// Issuance is halted while a node is being given a certificate: a decision made before the halt loses the race, on every
// replica, and uses up nothing of that node.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { verifyAs } from '#pki/signature.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openAdmissionQueue } from '#plane/limits/admission-queue.ts'
import { haltIssuance, resumeIssuance } from '#plane/identity/issuance-routes.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { enrollNode } from '#plane/enrollment/enroll-node.ts'
import { openCopiedImages } from '#plane/identity/copied-images.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { noOrders } from '../fakes/no-orders.ts'
import { noHolders } from '../fakes/no-holders.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { systemRandom } from '#platform/random.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { makeSigner, openPostgresStoreOn } from '../store/harness.ts'
import { operator, setUpOn } from './authority-setup.ts'
import { codeOf, newCsr, setUpRecovery, source } from './recovery-setup.ts'

const why = { reason: 'a copy of the store is out', renewals: false }

/** Signs, and lets something happen before what was signed is committed; once. */
const slowly = (issuer: Issuer, meanwhile: () => Promise<unknown>): { sign: Issuer['sign'] } => {
  let left = 1
  return {
    async sign(order) {
      const issued = await issuer.sign(order)
      if (left-- > 0) await meanwhile()
      return issued
    },
  }
}

test('halted between the signature and the commit: no node enrolls, renews or recovers, and a token is left as it was', async (t) => {
  const setup = await setUpRecovery(t)
  const { deps, store } = setup
  const issuer = deps.issuer
  const halting = () =>
    Object.assign(deps, { issuer: { ...issuer, ...slowly(issuer, () => haltIssuance(deps, why, operator)) } })
  const resume = async () => assert.equal((await resumeIssuance(deps, operator)).kind, 'written')
  const key = generateKey('p256')
  const { counter, outcome } = await setup.recoverable('n1', key)
  const secret = await setup.invite('n2')
  const counts = async () => [
    (await setup.journal('host.enrolled')).length,
    (await setup.journal('node.renewed')).length,
    (await setup.journal('node.recovered')).length,
  ]

  halting()
  const refused = await setup.enroll(secret, newCsr(), null)
  assert.deepEqual([codeOf(refused), refused.kind === 'refused' && refused.retryAfterMs], ['ISSUANCE_HALTED', 60_000])
  await resume()
  halting()
  assert.equal(codeOf(await setup.renew('n1')), 'ISSUANCE_HALTED')
  await resume()
  halting()
  assert.equal(codeOf(await setup.recoverByKey(key, 'n1', counter)), 'ISSUANCE_HALTED')
  assert.deepEqual(await counts(), [1, 0, 0])
  assert.equal((await setup.nodeNow('n1')).counter, outcome.node.counter)
  assert.deepEqual((await setup.nodeNow('n1')).recovery?.recoveredAtMs, [])

  await resume()
  assert.equal((await setup.enroll(secret, newCsr(), null)).kind, 'issued')
  assert.equal((await setup.renew('n1')).kind, 'issued')
  assert.equal((await setup.recoverByKey(key, 'n1', counter)).kind, 'issued')
  assert.deepEqual(await counts(), [2, 1, 1])
  assert.equal((await store.get('domain', 'domain'))?.value.issuance.kind, 'open')
})

test('renewals that go on: an admitted node renews, and an answered request is answered again', async (t) => {
  const setup = await setUpRecovery(t)
  const csr = newCsr()
  const secret = await setup.invite('n1')
  const first = await setup.enroll(secret, csr, null)
  assert(first.kind === 'issued', JSON.stringify(first))
  await haltIssuance(setup.deps, { ...why, renewals: true }, operator)
  const again = await setup.enroll(secret, csr, null)
  assert.equal(again.kind === 'issued' && again.certificate.der, first.certificate.der)
  await setup.firstUse('n1')
  assert.equal((await setup.renew('n1')).kind, 'issued')
  assert.equal(codeOf(await setup.enroll(await setup.invite('n2'), newCsr(), null)), 'ISSUANCE_HALTED')
  await haltIssuance(setup.deps, why, operator)
  assert.equal(codeOf(await setup.renew('n1')), 'ISSUANCE_HALTED')
})

test('a halt that is committed at one replica beats what another has decided and signed before it', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target } = await postgresDatabase(t)
  const signer = makeSigner()
  const [one, other] = [await openPostgresStoreOn(target, signer), await openPostgresStoreOn(target, signer)]
  for (const store of [one, other]) cleanup(t, () => store.close())
  const { open, openRecovery, clock, journal } = await setUpOn(tempFolder(t), one, {})
  const base = {
    feed: openFeed(),
    clock,
    random: systemRandom,
    urls: () => ({ node: 'https://localhost:1', marked: true }),
  }
  const issuer = await open()
  const atOne = { ...base, store: one, issuer }
  const made = await createToken(atOne, atOne, { node: 'n1', profile: null, replace: false, ttlMs: null }, operator)
  assert(made.kind === 'made')
  const atOther = {
    orders: noOrders,
    verifyProof: verifyAs,
    ...base,
    store: other,
    issuer: { ...issuer, ...slowly(issuer, () => haltIssuance(atOne, why, operator)) },
    recovery: await openRecovery(),
    domainName: 'test.example',
    anonymousBudget: openCallerBudget(clock, () => ({ perMinute: 3, perMinutePerSource: 3 })),
    admission: openAdmissionQueue(clock, 200),
    writeLimit: openWriteLimit(clock, () => 1),
    secondHolders: openSecondHolders({ ...base, store: other }, noHolders),
    copiedImages: openCopiedImages({ ...base, store: other }),
    probe: async () => ({ silentMs: 60_000 }),
  }
  const call = {
    method: 'token',
    ...{ secret: made.secret, askedId: null, hardware: { macs: [], bmcSerial: null } },
    ...{
      facts: null,
      evidence: null,
      recovery: null,
      identityProof: null,
      wireguard: null,
      source,
      correlation: 'call-1',
    },
  } as const
  assert.equal(codeOf(await enrollNode(atOther, atOther, { ...call, csr: newCsr() })), 'ISSUANCE_HALTED')
  assert.deepEqual(await journal('host.enrolled'), [])
  assert.equal((await resumeIssuance(atOne, operator)).kind, 'written')
  // A replica may hear of a resumption a moment later; of a halt it may not.
  await eventually('the other to hear of it', async () => {
    return (await enrollNode(atOther, atOther, { ...call, csr: newCsr() })).kind === 'issued'
  })
})
