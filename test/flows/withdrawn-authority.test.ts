// An authority whose key an attacker may have is withdrawn: another signs at once, its key is gone, and no
// certificate that it signed is handed out, also where that was under way.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { readOf, type Change } from '#domain/core/change.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { generateKey, loadPrivateKey } from '#pki/keys.ts'
import { allFromPem } from '#pki/pem.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { openDenyList } from '#plane/authn/deny-list.ts'
import { openFeed } from '#plane/core/feed.ts'
import { renewCertificate } from '#plane/identity/renew-certificate.ts'
import { withdrawnSource } from '#plane/alerts/alert-sources.ts'
import { openUnresolvedAlerts, reconcileSource } from '#plane/alerts/reconcile-alerts.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { signIntermediate } from '#plane/authority/sign-intermediate.ts'
import type { Withdrawal } from '#plane/authority/withdraw-issuer.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { day, leafOrder, longestProfileMs, operator, setUp, startMs, type Setup } from './authority-setup.ts'
import { codeOf, newCsr, setUpRecovery } from './recovery-setup.ts'

const withdraw = (authority: Authority, issuer: string): Promise<Withdrawal | Refusal> =>
  authority.withdraw({ issuer, reason: 'stolen', by: { ...operator, correlation: 'story-1' }, publish: () => {} })

const withdrawn = async (authority: Authority, issuer: string): Promise<Withdrawal> => {
  const outcome = await withdraw(authority, issuer)
  if (isRefusal(outcome)) assert.fail(JSON.stringify(outcome))
  return outcome
}

const signedBy = async (authority: Authority): Promise<string> => (await authority.sign(leafOrder(startMs, day))).issuer

const byRole = (authority: Authority, role: string): string =>
  authority.view().authorities.find((one) => one.role === role && one.signing)?.id ?? assert.fail(role)

/** The key ids of what the listeners present. */
const presented = (authority: Authority): string[] =>
  (allFromPem('CERTIFICATE', authority.serverIdentity().chainPem) ?? []).map((der) => {
    const certificate = parseCertificate(der)
    return certificate.kind === 'certificate' ? (certificate.subjectKeyId ?? '') : ''
  })

const rowOf = async ({ store }: Setup, issuer: string) => (await store.get('issuer', issuer))?.value ?? assert.fail()

for (const issuerKey of ['file', 'memory'] as const) {
  test(`an issuer with its key in ${issuerKey}: another signs, and is presented, when it is withdrawn`, async (t) => {
    const setup = await setUp(t, { issuerKey })
    const authority = await setup.open()
    const before = await signedBy(authority)
    const { issuers, successors } = await withdrawn(authority, before)
    assert.deepEqual(issuers, [before])
    assert.deepEqual(successors, [await signedBy(authority)])
    assert.ok(!presented(authority).includes(before))
    const { retiredAtMs, compromisedAtMs, notAfterMs } = await rowOf(setup, before)
    assert.deepEqual([retiredAtMs, compromisedAtMs], [startMs, startMs])
    const [denial] = await setup.store.denials()
    assert.deepEqual([denial?.kind, denial?.untilMs, denial?.reason], ['issuer', notAfterMs + 300_000, 'ca-compromise'])
    assert.deepEqual(authority.withdrawnIssuers(), [before])
    const [compromised] = await setup.journal('ca.compromised')
    const [rotated] = (await setup.journal('ca.rotated')).slice(-1)
    assert.deepEqual([compromised?.correlation, rotated?.correlation], ['story-1', 'story-1'])
    assert.equal((await setup.journal('alert.raised')).length, 1)
    assert.deepEqual((await withdrawn(authority, before)).issuers, [])
    assert.deepEqual((await openDenyList(setup.store, openFeed())).withdrawnIssuers(), [before])
    // A start without the memory of this one: nothing of the old key is left, and nothing is presented that it signed.
    const again = await setup.open()
    assert.ok(!presented(again).includes(before))
    assert.notEqual(await signedBy(again), before)
  })
}

test('an issuer that another plane took into service below a domain CA in the moment of its withdrawal goes with it', async (t) => {
  const setup = await setUp(t, { issuerKey: 'memory' })
  const authority = await setup.open()
  const [domainCa, issuer] = [byRole(authority, 'domain-ca'), await signedBy(authority)]
  const elsewhere = { ...(await rowOf(setup, issuer)), id: 'ab'.repeat(20) }
  const { commit } = setup.store
  let isFirst = true
  Object.assign(setup.store, {
    async commit(change: Change) {
      if (isFirst && change.writes.some(({ put }) => put === 'denial')) {
        isFirst = false
        await commit.call(setup.store, {
          reads: [readOf('issuer', elsewhere.id, null)],
          writes: [{ put: 'issuer', value: elsewhere }],
          entries: change.entries,
        })
      }
      return commit.call(setup.store, change)
    },
  })
  const { issuers } = await withdrawn(authority, domainCa)
  assert.deepEqual([...issuers].sort(), [domainCa, issuer, elsewhere.id].sort())
  assert.notEqual((await rowOf(setup, elsewhere.id)).compromisedAtMs, null)
})

test('a domain CA goes with everything below it, and a new one signs a new issuer', async (t) => {
  const setup = await setUp(t, { issuerKey: 'memory' })
  const authority = await setup.open()
  const [domainCa, issuer] = [byRole(authority, 'domain-ca'), await signedBy(authority)]
  const { issuers, successors } = await withdrawn(authority, domainCa)
  assert.deepEqual([...issuers].sort(), [domainCa, issuer].sort())
  assert.deepEqual(successors, [byRole(authority, 'domain-ca'), await signedBy(authority)])
  assert.deepEqual([...authority.withdrawnIssuers()].sort(), [domainCa, issuer].sort())
  assert.ok(presented(authority).every((id) => id !== domainCa && id !== issuer))
})

test('a root, a recovery root and an unknown authority cannot be withdrawn, and nothing happens', async (t) => {
  const setup = await setUp(t)
  const recovery = await setup.openRecovery()
  const authority = await setup.open({}, undefined, recovery)
  const before = await signedBy(authority)
  assert.equal(codeOf(await withdraw(authority, byRole(authority, 'root'))), 'ISSUER_NOT_WITHDRAWABLE')
  assert.equal(codeOf(await withdraw(authority, byRole(authority, 'recovery'))), 'ISSUER_NOT_WITHDRAWABLE')
  assert.equal(codeOf(await withdraw(authority, 'abcd')), 'ISSUER_NOT_FOUND')
  assert.equal(await signedBy(authority), before)
  assert.deepEqual(await setup.store.denials(), [])
})

test('below an offline root it waits for the ceremony: refused before anything is dropped, done after the import', async (t) => {
  const setup = await setUp(t, { rootOut: `${(await setUp(t)).folder}/root` })
  const authority = await setup.open()
  const before = await signedBy(authority)
  assert.equal(codeOf(await withdraw(authority, before)), 'CA_ROOT_OFFLINE')
  assert.equal(await signedBy(authority), before)
  assert.deepEqual(await setup.store.denials(), [])

  const requestPem = await authority.request(operator)
  if (typeof requestPem !== 'string' || setup.rootKeyFile === null) assert.fail(JSON.stringify(requestPem))
  const signed = await signIntermediate({
    rootKey: loadPrivateKey(fs.readFileSync(setup.rootKeyFile, 'utf8')),
    rootCertificatePem: fs.readFileSync(setup.rootKeyFile.replace(/key$/, 'crt'), 'utf8'),
    requestPem,
    lifetimeMs: 10 * longestProfileMs,
    nowMs: setup.clock.nowMs(),
    random: systemRandom,
  })
  assert.equal(typeof signed, 'string', JSON.stringify(signed))
  assert.equal(await authority.importIssued(signed as string, operator), undefined)
  const { issuers, successors } = await withdrawn(authority, before)
  assert.deepEqual([issuers, successors], [[before], []])
  assert.notEqual(await signedBy(authority), before)
})

test('an undelivered certificate of a withdrawn issuer is signed again by another; recovery costs its nodes nothing', async (t) => {
  const setup = await setUpRecovery(t)
  const { deps } = setup
  const authority = deps.issuer
  const key = generateKey('p256')
  const { counter, csr: first, outcome } = await setup.recoverable('n1', key)
  const before = outcome.certificate.issuer
  const [secret, csr] = [await setup.invite('n2'), newCsr()]
  let left = 1
  const sign: Authority['sign'] = async (order) => {
    const issued = await authority.sign(order)
    if (left-- > 0) await withdrawn(authority, before)
    return issued
  }
  Object.assign(deps, { issuer: { ...authority, sign } })
  const enrolled = await setup.enroll(secret, csr, null)
  assert(enrolled.kind === 'issued', JSON.stringify(enrolled))
  assert.notEqual(enrolled.certificate.issuer, before)

  // The certificate of the withdrawn authority is no answer any more, and its key is not certified again (L3).
  const same = await setup.recoverByKey(key, 'n1', counter, first)
  assert.equal(same.kind === 'refused' && same.code, 'KEY_IN_USE')
  const back = await setup.recoverByKey(key, 'n1', counter, newCsr())
  assert(back.kind === 'issued', JSON.stringify(back))
  assert.notEqual(back.certificate.issuer, before)
  assert.deepEqual((await setup.nodeNow('n1')).recovery?.recoveredAtMs, [])
  const [entry] = await setup.journal('node.recovered')
  assert.equal(entry?.body['withdrawn_issuer'], before)
  assert.deepEqual([back.node.epoch, back.node.counter], [2, 2])
  await setup.firstUse('n1')
  const charged = await setup.recoverByKey(key, 'n1', setup.counterOf(back))
  assert.equal(charged.kind, 'issued')
  assert.equal((await setup.nodeNow('n1')).recovery?.recoveredAtMs.length, 1)
})

test('a successor that is of a withdrawn authority is no successor: its holder renews once more and is one holder', async (t) => {
  const setup = await setUpRecovery(t)
  const { deps } = setup
  const authority = deps.issuer
  const { outcome } = await setup.recoverable('n1', generateKey('p256'))
  const holder = await setup.principal('n1')
  // Of another plane, as far as this test goes.
  assert.equal(await authority.rotate(operator), undefined)
  const second = await setup.renew('n1')
  assert(second.kind === 'issued' && second.certificate.issuer !== outcome.certificate.issuer)
  await withdrawn(authority, second.certificate.issuer)
  const call = {
    csr: newCsr(),
    counter: null,
    recovery: null,
    issuerRoots: null,
    evidence: null,
    correlation: 'renewal',
  }
  const third = await renewCertificate(deps, deps, holder, call)
  assert(third.kind === 'issued', JSON.stringify(third))
  assert.notEqual(third.certificate.issuer, second.certificate.issuer)
  assert.deepEqual((await setup.nodeNow('n1')).conditions, [])
})

test('its alert is over once no node lives by it any more', async (t) => {
  const setup = await setUpRecovery(t)
  const { deps, store } = setup
  const key = generateKey('p256')
  const { counter, outcome } = await setup.recoverable('n1', key)
  const alerts = await openUnresolvedAlerts(store, deps.feed)
  const source = withdrawnSource({ ...deps, timers: systemTimers })
  const watch = () => reconcileSource(deps, alerts, source)
  const publish = (committed: Parameters<typeof deps.feed.publish>[0]) => deps.feed.publish(committed)
  await deps.issuer.withdraw({ issuer: outcome.certificate.issuer, reason: 'stolen', by: operator, publish })
  const open = () => [...alerts.all()].map(({ kind }) => kind)
  await watch()
  assert.deepEqual(open(), ['authority_compromised'])
  assert.equal((await setup.recoverByKey(key, 'n1', counter)).kind, 'issued')
  setup.clock.advance(60_000)
  await watch()
  assert.deepEqual(open(), [])
})
