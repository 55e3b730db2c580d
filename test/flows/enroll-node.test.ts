// The enrollment flow on a real store: whom the budget for strangers spares, and what a probe still proves afterwards.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { verifyAs } from '#pki/signature.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openAdmissionQueue } from '#plane/limits/admission-queue.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { enrollNode, type EnrollParts } from '#plane/enrollment/enroll-node.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { openCopiedImages } from '#plane/identity/copied-images.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { systemRandom } from '#platform/random.ts'
import { noHolders } from '../fakes/no-holders.ts'
import { noOrders } from '../fakes/no-orders.ts'
import { operator, setUp } from './authority-setup.ts'

const mac = '02:00:00:00:00:01'

const silent = { silentMs: 30_000 }

const setUpEnrollment = async (t: TestContext, profile: string, probe: EnrollParts['probe'] = async () => silent) => {
  const { store, clock, open, openRecovery } = await setUp(t)
  const feed = openFeed()
  const deps: FlowCore & EnrollParts = {
    store,
    feed,
    clock,
    random: systemRandom,
    issuer: await open(),
    orders: noOrders,
    verifyProof: verifyAs,
    recovery: await openRecovery(),
    domainName: 'test.example',
    anonymousBudget: openCallerBudget(clock, () => ({ perMinute: 2, perMinutePerSource: 2 })),
    admission: openAdmissionQueue(clock, 10),
    writeLimit: openWriteLimit(clock, () => 1),
    secondHolders: openSecondHolders({ store, feed, clock }, noHolders),
    copiedImages: openCopiedImages({ store, feed, clock, random: systemRandom }),
    probe,
  }
  await registerNode(deps, { id: 'n1', profile, macs: [mac], bmcSerial: null }, operator)
  const join = (csr = makeCsr(generateKey('p256'), 'any'), source = '192.0.2.9') =>
    enrollNode(deps, deps, {
      method: 'hardware',
      secret: null,
      askedId: null,
      hardware: { macs: [mac], bmcSerial: null },
      facts: null,
      evidence: null,
      csr,
      recovery: null,
      identityProof: null,
      wireguard: null,
      source,
      correlation: 'c1',
    })
  /** The node as the registry has it, active with its newest certificate. */
  const activate = async (): Promise<void> => {
    const row = await store.get('node', 'n1')
    assert(row !== null && row.value.membership.kind === 'enrolled')
    const { current } = row.value.membership.slots
    const credential = {
      by: 'certificate',
      issuer: current.issuer,
      serial: current.serial,
      spki: current.spki,
    } as const
    const principal = {
      kind: 'node',
      id: 'n1',
      epoch: row.value.epoch,
      credential,
      notAfterMs: current.notAfterMs,
    } as const
    const used = await useCertificate(deps, { ...principal, evidenceOnly: false, source: '192.0.2.8' }, 'c2')
    assert.equal(used.kind, 'in-use')
  }
  return { deps, store, join, activate }
}

test('an address proves nothing under a profile that does not accept it: its caller is anonymous', async (t) => {
  const { deps, join } = await setUpEnrollment(t, 'gpu-cloud')
  const codes: string[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    const outcome = await join()
    assert(outcome.kind === 'refused')
    codes.push(outcome.code)
    deps.anonymousBudget.charge('192.0.2.9')
  }
  assert.deepEqual(codes, ['JOIN_METHOD_NOT_ALLOWED', 'JOIN_METHOD_NOT_ALLOWED', 'RATE_LIMITED'])
})

test('a machine whose profile accepts its address is served when the budget is gone', async (t) => {
  const { deps, join } = await setUpEnrollment(t, 'hpc-diskless')
  while (deps.anonymousBudget.charge('192.0.2.9') === 'within');
  assert.equal((await join()).kind, 'issued')
})

test('a caller that knows an address cannot make the plane write without end', async (t) => {
  const { join } = await setUpEnrollment(t, 'hpc-diskless')
  const outcomes: string[] = []
  for (let attempt = 0; attempt < 62; attempt++) {
    const outcome = await join()
    outcomes.push(outcome.kind === 'refused' ? outcome.code : outcome.kind)
  }
  assert.deepEqual([...new Set(outcomes.slice(0, 60))], ['issued'])
  assert.deepEqual(outcomes.slice(60), ['RATE_LIMITED', 'RATE_LIMITED'])
})

test('rivals who know its MAC use up neither the joins nor the renewals of the machine itself', async (t) => {
  const { deps, store, join } = await setUpEnrollment(t, 'hpc-diskless')
  assert.equal((await join(undefined, '192.0.2.50')).kind, 'issued')
  store.observe('n1', { source: '192.0.2.50' })
  const rivals: string[] = []
  for (let attempt = 0; attempt < 70; attempt++) {
    const outcome = await join(undefined, `192.0.2.${100 + (attempt % 30)}`)
    rivals.push(outcome.kind === 'refused' ? outcome.code : outcome.kind)
  }
  assert.equal(rivals.at(-1), 'RATE_LIMITED')
  assert.equal((await join(undefined, '192.0.2.50')).kind, 'issued')
  // What a node asks for with its certificate is limited by its id alone.
  assert.equal(deps.writeLimit.take('n1'), null)
})

test('silence of the machine before proves nothing about the one that took its place meanwhile', async (t) => {
  let during = async (): Promise<void> => undefined
  const answers: ('answered' | typeof silent)[] = [silent, 'answered']
  const { store, join, activate } = await setUpEnrollment(t, 'hpc-diskless', async () => {
    const answer = answers.shift() ?? silent
    await during()
    return answer
  })
  assert.equal((await join()).kind, 'issued')
  await activate()
  // While the old machine is being probed, it is back with a new key, confirmed and answering.
  during = async () => {
    during = async () => undefined
    answers.unshift(silent)
    assert.equal((await join()).kind, 'issued')
    await activate()
  }
  const late = await join()
  assert.equal(late.kind === 'refused' && late.code, 'ALREADY_ACTIVE')
  assert.equal((await store.get('node', 'n1'))?.value.epoch, 2)
})

test('a token that answered a machine with its existing certificate lets no other machine in', async (t) => {
  const { deps, store } = await setUpEnrollment(t, 'gpu-cloud')
  const invite = async (): Promise<string> => {
    const asked = { node: 'n1', profile: null, replace: false, ttlMs: null }
    const made = await createToken(
      deps,
      { issuer: deps.issuer, urls: () => ({ node: 'https://localhost:1', marked: true }) },
      asked,
      operator,
    )
    assert(made.kind === 'made')
    return made.secret
  }
  const enroll = (secret: string, csr: string) => {
    const call = {
      method: 'token',
      askedId: null,
      hardware: { macs: [], bmcSerial: null },
      facts: null,
      evidence: null,
      recovery: null,
      identityProof: null,
      wireguard: null,
    } as const
    return enrollNode(deps, deps, { ...call, secret, csr, source: '192.0.2.9', correlation: 'c1' })
  }
  const csr = makeCsr(generateKey('p256'), 'any')
  const certified = async (secret: string): Promise<string> => {
    const outcome = await enroll(secret, csr)
    assert(outcome.kind === 'issued')
    return outcome.certificate.der
  }
  const invitation = await invite()
  const first = await certified(invitation)
  // A reply that was lost is asked for again, whatever strangers do meanwhile.
  while (deps.anonymousBudget.charge('192.0.2.9') === 'within');
  assert.equal(await certified(invitation), first)
  const second = await invite()
  for (let repeat = 0; repeat < 2; repeat++) assert.equal(await certified(second), first)
  const thief = await enroll(second, makeCsr(generateKey('p256'), 'any'))
  assert.equal(thief.kind === 'refused' && thief.code, 'TOKEN_USED')
  const query = { after: null, last: null, limit: 10, node: 'n1' }
  assert.equal((await store.journal.read({ ...query, type: 'enrollment_token.used' })).length, 1)
  assert.equal((await store.journal.read({ ...query, type: 'host.enrolled' })).length, 1)
})
