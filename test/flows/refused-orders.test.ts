// An outside issuer that refuses, whose clock is apart, or whose answer is none: what is left of an order, and when it is asked once more.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FakeIssuer } from '../fakes/fake-issuer.ts'
import { IssuerFault, type IssuerFaultCode } from '#plane/outside/issuer-client.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { keyId } from '#pki/spki.ts'
import { operator } from './authority-setup.ts'
import { setUpOutside, type OutsidePlane } from './outside-setup.ts'
import { codeOf, newCsr } from './recovery-setup.ts'

const minute = 60_000
const refuses: FakeIssuer['answer'] = async () => ({ kind: 'unsigned', why: 'the policy says no' })
const states = async (plane: OutsidePlane): Promise<readonly string[]> =>
  (await plane.orders()).map(({ state }) => state.kind).toSorted()

test('an issuer that refuses on and on leaves one order of a node, whichever keys the node brings', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const { answer } = fake
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  fake.answer = refuses
  for (let times = 0; times < 5; times++) {
    const refused = await plane.enroll(secret, csr, null)
    assert.ok(refused.kind === 'refused' && refused.code === 'ISSUER_UNAVAILABLE')
    assert.equal(refused.retryAfterMs, minute, 'somebody has to set it right first')
  }
  assert.deepEqual(await states(plane), ['lost'])
  assert.equal((await plane.journal('order.placed')).length, 5, 'the journal has each of them')
  assert.equal(new Set(fake.asked.map(({ serial }) => serial)).size, 5, 'a serial goes to an issuer once')
  fake.answer = answer
  assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'issued')
  assert.deepEqual(await states(plane), ['issued'])
  await plane.firstUse('n1')

  fake.answer = refuses
  for (let times = 0; times < 5; times++) assert.equal(codeOf(await plane.renew('n1')), 'ISSUER_UNAVAILABLE')
  assert.deepEqual(await states(plane), ['issued', 'lost'])
  assert.equal((await plane.journal('order.abandoned')).length, 4, 'another key was brought each time')
  assert.deepEqual([await plane.rows('key-ban'), await plane.toBeRevoked()], [[], []])
})

test('of two requests that repeat one that was refused, one is signed, and both get its certificate', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const { answer } = fake
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  fake.answer = refuses
  await plane.enroll(secret, csr, null)
  fake.answer = answer
  const both = await Promise.all([plane.enroll(secret, csr, null), plane.enroll(secret, csr, null)])
  const ders = both.map((one) => (one.kind === 'issued' && 'certificate' in one ? one.certificate.der : assert.fail()))
  assert.equal(ders[0], ders[1])
  assert.deepEqual([fake.signed.length, await states(plane)], [1, ['issued']])
})

test('a plane that starts anew takes the row of an order that was refused', async (t) => {
  const setup = await setUpOutside(t)
  const { plane, fake } = setup
  const { answer } = fake
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  fake.answer = refuses
  await plane.enroll(secret, csr, null)
  fake.answer = answer
  const next = await setup.restart()
  assert.equal(codeOf(await next.enroll(secret, csr, null)), 'issued')
  assert.deepEqual([fake.signed.length, await states(next)], [1, ['issued']])
})

test('an order that was refused, and whose node went to another issuer, is forgotten at once', async (t) => {
  const { plane, fake, clock } = await setUpOutside(t)
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  fake.answer = refuses
  await plane.enroll(secret, csr, null)
  await plane.signedBy('built-in')
  assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'issued')
  assert.deepEqual(await states(plane), ['replaced'])
  await plane.store.forget(clock.nowMs())
  assert.deepEqual(await states(plane), [])
})

test('an order that takes the row of a lost one is not abandoned with it by a leader that has read the lost one', async (t) => {
  const { plane, fake, clock } = await setUpOutside(t)
  const { answer } = fake
  assert.equal(codeOf(await plane.enroll(await plane.invite('n1'), newCsr(), null)), 'issued')
  await plane.firstUse('n1')
  fake.answer = refuses
  assert.equal(codeOf(await plane.renew('n1')), 'ISSUER_UNAVAILABLE')
  // Another certificate, with another key: nobody waits for the lost order any longer.
  clock.advance(minute)
  await plane.signedBy('built-in')
  assert.equal(codeOf(await plane.renew('n1')), 'issued')
  await plane.firstUse('n1')
  clock.advance(minute)
  await plane.signedBy(fake.issuer.name)

  const [placed, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  fake.answer = async (attempt, signal) => {
    placed.resolve()
    await goOn.promise
    return answer(attempt, signal)
  }
  const renewals: ReturnType<OutsidePlane['renew']>[] = []
  await plane.sweep(async () => {
    if (renewals.length === 0) renewals.push(plane.renew('n1'))
    await placed.promise
  })
  goOn.resolve()
  assert.deepEqual((await Promise.all(renewals)).map(codeOf), ['issued'])
  assert.deepEqual([await states(plane), fake.signed.length], [['issued', 'issued'], 2])
  assert.deepEqual([await plane.rows('key-ban'), await plane.toBeRevoked()], [[], []])
})

/** Both times are of the clock of the issuer. */
const dated =
  (fake: FakeIssuer, byMs: number, longerMs = 0): FakeIssuer['answer'] =>
  async (attempt) =>
    fake.sign(attempt, {
      spec: (spec) => ({
        ...spec,
        notBeforeMs: spec.notBeforeMs + byMs,
        notAfterMs: spec.notAfterMs + byMs + longerMs,
      }),
    })

const violations = async (plane: OutsidePlane): Promise<readonly unknown[]> =>
  (await plane.journal('issuer.violation')).map(({ body }) => body['fields'])

for (const says of [true, false])
  test(`a certificate of an issuer whose clock is four minutes ahead is kept, ${says ? 'as it says itself' : 'as it shows'}`, async (t) => {
    const { plane, fake } = await setUpOutside(t)
    fake.aheadMs = says ? 4 * minute : null
    // Without its word its backdating hides a minute, which is asked for the less (as Vault is).
    fake.answer = dated(fake, 4 * minute, says ? 0 : -minute)
    assert.equal(codeOf(await plane.enroll(await plane.invite('n1'), newCsr(), null)), 'issued')
    assert.deepEqual([await violations(plane), await plane.toBeRevoked()], [[], []])
  })

test('a certificate of an issuer whose clock is four minutes behind, and which dates back by three, is kept', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  fake.aheadMs = -4 * minute
  fake.answer = dated(fake, -6 * minute, 2 * minute)
  assert.equal(codeOf(await plane.enroll(await plane.invite('n1'), newCsr(), null)), 'issued')
})

test('beyond the tolerance of the domain, or longer than was ordered, it is a violation as ever', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  const cases: readonly [aheadMs: number, answer: FakeIssuer['answer'], fields: readonly string[]][] = [
    [7 * minute, dated(fake, 7 * minute), ['notBefore', 'notAfter']],
    [4 * minute, dated(fake, 4 * minute, 2 * minute), ['notAfter']],
    [0, dated(fake, 0, 2 * minute), ['notAfter']],
    [-20 * minute, dated(fake, -11 * minute), ['notBefore']],
  ]
  for (const [aheadMs, answer, fields] of cases) {
    fake.aheadMs = aheadMs
    fake.answer = answer
    assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'ISSUER_UNAVAILABLE')
    assert.deepEqual((await violations(plane)).at(-1), fields)
  }
  assert.equal((await plane.toBeRevoked()).length, cases.length)
})

const asked: Readonly<Partial<Record<IssuerFaultCode, number>>> = {
  cut: 2,
  failed: 1,
  'not-json': 1,
  redirect: 1,
  timeout: 1,
  'too-long': 1,
}
for (const [code, times] of Object.entries(asked))
  test(`after the fault ${code} the issuer has been asked ${times === 1 ? 'once' : 'once more, under another serial'}`, async (t) => {
    const { plane, fake } = await setUpOutside(t)
    fake.answer = async () => {
      throw new IssuerFault('it did not answer', code as IssuerFaultCode, false)
    }
    const outcome = await plane.enroll(await plane.invite('n1'), newCsr(), null)
    assert.equal(codeOf(outcome), 'ISSUER_UNAVAILABLE')
    assert.equal(new Set(fake.asked.map(({ serial }) => serial)).size, times)
  })

test('an issuer whose roots were withdrawn is asked for nothing', async (t) => {
  const { plane, fake } = await setUpOutside(t)
  const publish = (committed: Committed): void => plane.core.feed.publish(committed)
  const wanted = { issuer: keyId(fake.root.key.spki), reason: 'its key is known', by: operator, publish }
  assert.equal((await plane.deps.issuer.withdraw(wanted)).kind, 'withdrawn')
  const outcome = await plane.enroll(await plane.invite('n1'), newCsr(), null)
  assert.equal(codeOf(outcome), 'ISSUER_UNAVAILABLE')
  assert.deepEqual([fake.asked.length, await plane.orders()], [0, []])
})
