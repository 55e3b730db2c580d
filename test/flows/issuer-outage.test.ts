// A day of a fleet whose outside issuer is away for a third of it, unscaled: agents by their own rules of when to ask, the plane with its slots
// and its breaker, and a clock that a test moves from one event to the next.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { jitterOf, renewAtMs, renewRetryMs, slotWaitMs } from '#agent/state/should-renew.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { slots } from '#domain/issuers/issuer-pace.ts'
import { openUnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { notReady } from '#plane/boot/readiness.ts'
import type { Issued } from '#plane/identity/issue.ts'
import { openOutsideIssuers, type OutsideIssuers } from '#plane/issuers/open-outside-issuers.ts'
import { watchIssuers } from '#plane/issuers/watch-issuers.ts'
import type { FakeIssuer } from '../fakes/fake-issuer.ts'
import { manualTimers, type ManualTimers } from '../fakes/manual-timers.ts'
import { seededRandom } from '../fakes/seeded-random.ts'
import { hour, startMs } from './authority-setup.ts'
import { setUpOutside } from './outside-setup.ts'
import { newCsr } from './recovery-setup.ts'

const count = process.env['MUSTER_LONG'] === '1' ? 1000 : 160
const minute = 60_000
const second = 1000
/** It is away from the moment at which the first node may renew: nobody has a new certificate by then. */
const awayFromMs = startMs + 12 * hour
const backAtMs = awayFromMs + 8 * hour
/** How long it takes for an answer: as fast as that, its slots serve eight in a second. */
const answerMs = 2 * second
const refusedAfterMs = 5 * second

/** What takes time to a node at the issuer. */
type Pending = { readonly atMs: number; readonly end: () => void }

/** `tryAtMs`: Infinity once it is renewed, and while it asks. */
type Renewing = {
  readonly id: string
  readonly csr: string
  readonly issuedAtMs: number
  readonly notAfterMs: number
  tryAtMs: number
  failures: number
  renewedAtMs: number | null
}

const setUp = async (t: TestContext) => {
  const opened: { timers: ManualTimers | null; outside: OutsideIssuers | null; fake: FakeIssuer | null } = {
    ...{ timers: null, outside: null, fake: null },
  }
  const given = await setUpOutside(t, {
    before: {
      timers: (clock) => (opened.timers = manualTimers(clock)),
      door: (core, known) =>
        (opened.outside = openOutsideIssuers(core, {
          known,
          secrets: { find: async () => ({}) },
          kinds: {
            open: async ({ issuer }) => {
              const signer = (await opened.fake?.door.signerOf(issuer.id)) ?? assert.fail('no signer')
              return { ...signer, renewalRoot: null, login: () => null, close() {} }
            },
          },
        })),
    },
  })
  opened.fake = given.fake
  const { timers, outside } = opened
  assert(timers !== null && outside !== null)
  return { ...given, timers, outside }
}

test(`an issuer that is away for 8 of 24 hours costs none of ${count} nodes its certificate`, async (t) => {
  const { plane, fake, clock, timers, outside } = await setUp(t)
  const { core, store, deps } = plane
  const random = seededRandom('outage')
  const health = () => outside.health(fake.issuer)
  const nowMs = (): number => clock.nowMs()

  const pending = new Set<Pending>()
  const inMs = (ms: number): Promise<void> =>
    new Promise((resolve) => void pending.add({ atMs: nowMs() + ms, end: resolve }))
  const seen = { atOnce: 0, waiting: 0, inVain: 0 }
  fake.answer = async (attempt) => {
    const isAway = nowMs() >= awayFromMs && nowMs() < backAtMs
    await inMs(isAway ? refusedAfterMs : answerMs)
    if (!isAway) return fake.sign(attempt)
    seen.inVain += 1
    throw new Error('no connection')
  }

  await plane.signedBy('built-in')
  const nodes: Renewing[] = []
  for (let number = 0; number < count; number++) {
    const id = `n${number}`
    const outcome = await plane.enroll(await plane.invite(id), newCsr(), null)
    assert(outcome.kind === 'issued', JSON.stringify(outcome))
    await plane.firstUse(id)
    const { current } = slotsOf(await plane.nodeNow(id)) ?? assert.fail(id)
    const { serial, issuedAtMs, notAfterMs } = current
    const { renewFrom, renewTo } = (await store.get('profile', 'gpu-cloud'))?.value.certificate ?? assert.fail()
    const tryAtMs = renewAtMs({ issuedAtMs, notAfterMs }, { renewFrom, renewTo }, jitterOf(serial))
    assert.ok(tryAtMs >= awayFromMs)
    nodes.push({ id, csr: newCsr(), issuedAtMs, notAfterMs, tryAtMs, failures: 0, renewedAtMs: null })
  }
  await plane.signedBy(fake.issuer.name)

  const known = { all: () => [fake.issuer], find: () => fake.issuer }
  const alerts = await openUnresolvedAlerts(store, core.feed)
  const watch = watchIssuers(core, { known, outside, alerts })
  let asking = 0
  const told: number[] = []
  const take = async (node: Renewing, outcome: Issued | Refusal): Promise<void> => {
    if (outcome.kind === 'issued') {
      await plane.firstUse(node.id)
      node.renewedAtMs = nowMs()
      return
    }
    assert.equal(outcome.code, 'ISSUER_UNAVAILABLE', JSON.stringify(outcome))
    const remainingMs = node.notAfterMs - nowMs()
    assert.ok(remainingMs > 0, `${node.id} has lost its certificate`)
    const retryAfterMs = outcome.retryAfterMs ?? assert.fail('it is told when to come back')
    if (nowMs() >= backAtMs) told.push(nowMs() + retryAfterMs)
    node.failures += 1
    const ownMs = renewRetryMs(node.failures, remainingMs, random.unit())
    node.tryAtMs = nowMs() + Math.max(ownMs, slotWaitMs(retryAfterMs, remainingMs))
  }
  const failures: unknown[] = []
  const ask = (node: Renewing): void => {
    node.tryAtMs = Infinity
    asking += 1
    plane
      .renew(node.id, { csr: node.csr })
      .then((outcome) => take(node, outcome))
      .catch((error: unknown) => void failures.push(error))
      .finally(() => (asking -= 1))
  }
  /** Nothing goes on any more but what waits for time to pass. */
  const settled = async (): Promise<void> => {
    while (asking > pending.size + health().waiting) await new Promise((resolve) => setImmediate(resolve))
    if (failures.length > 0) throw new AggregateError(failures)
    seen.atOnce = Math.max(seen.atOnce, pending.size)
    seen.waiting = Math.max(seen.waiting, health().waiting)
  }
  let watchAtMs = awayFromMs
  /** To the next event, whatever it is. */
  const step = async (): Promise<void> => {
    const events = [watchAtMs, ...nodes.map(({ tryAtMs }) => tryAtMs), ...[...pending].map(({ atMs }) => atMs)]
    // What waits for a slot is sent away by a timer.
    const untilMs = Math.min(...events, health().waiting > 0 ? nowMs() + second : Infinity)
    timers.advance(Math.max(0, untilMs - nowMs()))
    for (const one of pending)
      if (one.atMs <= nowMs()) {
        pending.delete(one)
        one.end()
      }
    for (const node of nodes) if (node.tryAtMs <= nowMs()) ask(node)
    if (watchAtMs <= nowMs()) {
      await watch.run(store)
      watchAtMs = nowMs() + minute
    }
    await settled()
  }
  const until = async (atMs: number): Promise<void> => {
    while (nowMs() < atMs) await step()
  }

  await until(awayFromMs + 4 * hour)
  assert.ok(alerts.has('issuer_unavailable', 'corp'))
  assert.deepEqual(notReady({ store, authority: deps.issuer, clock, alsoUnready: () => [] }), [], '/readyz')
  await until(backAtMs)
  assert.ok(nodes.every(({ failures: tried, renewedAtMs }) => tried > 0 && renewedAtMs === null))
  // One after five faults, and from then on one a minute at most.
  assert.ok(seen.inVain <= slots + (8 * hour) / minute, `${seen.inVain} were sent in vain`)
  const orders = (await plane.rows('order')).length
  assert.ok(orders <= seen.inVain + slots, `${orders} orders: who is turned away costs no commit`)

  // They come back by themselves. A while later an operator has all that are left ask at once (muster agent renew --now).
  await until(backAtMs + 5 * minute)
  assert.ok(!alerts.has('issuer_unavailable', 'corp'))
  const left = nodes.filter(({ renewedAtMs, tryAtMs }) => renewedAtMs === null && tryAtMs < Infinity)
  assert.ok(left.length > count / 2, `${left.length} are left`)
  assert.ok(left.length < count, 'nobody has come by itself')
  told.length = 0
  for (const node of left) node.tryAtMs = nowMs()
  while (nodes.some(({ renewedAtMs }) => renewedAtMs === null)) await step()

  assert.equal(seen.atOnce, slots)
  assert.ok(seen.waiting > 0 && seen.waiting <= 128, `${seen.waiting} waited`)
  const apart = told.toSorted((one, other) => one - other)
  assert.equal(new Set(apart).size, apart.length, 'each has a time of its own')
  const { perSecond } = health()
  assert.ok(perSecond < 16, `${perSecond} answers a second are believed in, and it gives 8`)
  const lastMs = Math.max(...nodes.map(({ renewedAtMs }) => renewedAtMs ?? Infinity))
  assert.ok(lastMs - backAtMs <= hour, 'an agent asks once an hour at the latest')
  t.diagnostic(
    `${left.length} asked at once; the last was renewed ${Math.round((lastMs - backAtMs) / minute)} min later`,
  )
  for (const { id } of nodes) {
    const { membership, epoch } = await plane.nodeNow(id)
    assert.deepEqual([membership.kind, epoch], ['active', 1], id)
  }
  assert.deepEqual(await plane.journal('node.recovery_requested'), [])
})
