// Alerts on a real store: raised, resolved and raised again with what they follow; nothing lost to a crash, nothing twice.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acknowledgeAlert } from '#plane/alerts/alert-routes.ts'
import { openFeed } from '#plane/core/feed.ts'
import { agingSource } from '#plane/alerts/alert-sources.ts'
import { followNodes } from '#plane/alerts/follow-nodes.ts'
import { openUnresolvedAlerts, reconcileSource } from '#plane/alerts/reconcile-alerts.ts'
import { watchFailures } from '#plane/alerts/watch-failures.ts'
import { entry } from '#domain/core/change.ts'
import { refuse } from '#domain/core/refusal.ts'
import { systemRandom } from '#platform/random.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { day, hour, setUp } from './authority-setup.ts'
import { by, setUpAlerts, type AlertSetup } from './alert-setup.ts'

const kindsOf = async (setup: AlertSetup): Promise<string[]> =>
  (await setup.unresolved()).map(({ kind, subject, state }) => `${kind} ${subject} ${state.kind}`).sort()

test('an alert follows its condition through its life', async (t) => {
  const setup = await setUpAlerts(t)
  await setup.register('gpu-001')
  const plane = await setup.start()
  const follower = followNodes(plane, plane.alerts)
  t.after(() => follower.stop())

  await setup.raise(plane.feed, 'gpu-001', 'spoof_suspected', 'another key')
  await setup.raise(plane.feed, 'gpu-001', 'disk_full')
  await eventually('the alert', async () => (await setup.unresolved()).length > 0)
  assert.deepEqual(await kindsOf(setup), ['spoof_suspected gpu-001 open'])
  const [first] = await setup.unresolved()
  assert.deepEqual([first?.reason, first?.severity, first?.sinceMs], ['another key', 'critical', setup.clock.nowMs()])

  const acked = await acknowledgeAlert(plane, first?.id ?? '', 'on it', { ...by, actor: 'operator:ada' })
  assert.equal(acked.kind === 'acknowledged' && acked.alert.state.kind, 'acknowledged')
  assert.deepEqual(await kindsOf(setup), ['spoof_suspected gpu-001 acknowledged'])

  await setup.clear(plane.feed, 'gpu-001', 'spoof_suspected')
  await eventually('its end', async () => (await setup.unresolved()).length === 0)

  setup.clock.advance(hour)
  await setup.raise(plane.feed, 'gpu-001', 'spoof_suspected', 'again')
  await eventually('the alert again', async () => (await setup.unresolved()).length > 0)
  const [second] = await setup.unresolved()
  assert.notEqual(second?.id, first?.id)
  assert.equal(second?.state.kind, 'open')
  assert.deepEqual(
    [await setup.count('alert.raised'), await setup.count('alert.acknowledged'), await setup.count('alert.resolved')],
    [2, 1, 1],
  )
})

test('a crash between a condition and its alert loses nothing, and a walk over what is settled raises nothing twice', async (t) => {
  const setup = await setUpAlerts(t)
  await Promise.all(Array.from({ length: 450 }, (_, at) => setup.register(`gpu-${at}`)))
  await setup.raise(null, 'gpu-3', 'cert_expired')
  await setup.raise(null, 'gpu-449', 'needs_approval')
  for (let start = 0; start < 3; start++) {
    const plane = await setup.start()
    const follower = followNodes(plane, plane.alerts)
    await follower.walk()
    await follower.stop()
    assert.deepEqual(await kindsOf(setup), ['cert_expired gpu-3 open', 'recovery_waits gpu-449 open'])
  }
  assert.equal(await setup.count('alert.raised'), 2)

  await setup.clear(null, 'gpu-3', 'cert_expired')
  // Ended and begun again while no plane was there to see it.
  await setup.clear(null, 'gpu-449', 'needs_approval')
  setup.clock.advance(hour)
  await setup.raise(null, 'gpu-449', 'needs_approval')
  const plane = await setup.start()
  const follower = followNodes(plane, plane.alerts)
  await follower.walk()
  await follower.stop()
  assert.deepEqual(await kindsOf(setup), ['recovery_waits gpu-449 open'])
  assert.deepEqual([await setup.count('alert.raised'), await setup.count('alert.resolved')], [3, 2])
})

test('an alert that could not be written is written once the store takes it', async (t) => {
  const setup = await setUpAlerts(t)
  await setup.register('gpu-001')
  const plane = await setup.start()
  let broken = true
  const store = {
    ...plane.store,
    commit: async (change: Parameters<typeof plane.store.commit>[0]) => {
      if (broken) throw new Error('no space left on device')
      return plane.store.commit(change)
    },
  }
  const follower = followNodes({ ...plane, store }, plane.alerts)
  t.after(() => follower.stop())
  await setup.raise(plane.feed, 'gpu-001', 'cert_expired')
  await follower.again()
  assert.deepEqual(await kindsOf(setup), [])
  broken = false
  await follower.again()
  assert.deepEqual(await kindsOf(setup), ['cert_expired gpu-001 open'])
})

const sendRefusals = (watch: ReturnType<typeof watchFailures>, node: string, actor: string, times: number): void => {
  for (let at = 0; at < times; at++)
    watch.take({ refusal: { ...refuse('CSR_INVALID'), about: { node, actor } }, principal: null, source: '192.0.2.9' })
}

test('five refusals of one proven identity within ten minutes are one alert and one write, however many follow', async (t) => {
  const setup = await setUpAlerts(t)
  await setup.register('gpu-001')
  const plane = await setup.start()
  const watch = watchFailures(plane, plane.alerts, 'lab.example')
  sendRefusals(watch, 'gpu-001', 'node:gpu-001', 4)
  setup.clock.advance(11 * 60_000)
  sendRefusals(watch, 'gpu-001', 'node:gpu-001', 4)
  await watch.settled()
  assert.equal(await setup.count('alert.raised'), 0)
  sendRefusals(watch, 'gpu-001', 'node:gpu-001', 1000)
  await watch.settled()
  assert.deepEqual(await kindsOf(setup), ['repeated_failures gpu-001 open'])

  setup.clock.advance(29 * 60_000)
  await watch.sweep(plane)
  assert.equal((await setup.unresolved()).length, 1)
  setup.clock.advance(60_000)
  await watch.sweep(plane)
  assert.deepEqual(await kindsOf(setup), [])
  assert.deepEqual([await setup.count('alert.raised'), await setup.count('alert.resolved')], [1, 1])
})

test("a caller without a node's credential raises no alert about it", async (t) => {
  const setup = await setUpAlerts(t)
  await setup.register('gpu-001')
  await setup.register('hpc-001', { profile: 'hpc-diskless' })
  const plane = await setup.start()
  const watch = watchFailures(plane, plane.alerts, 'lab.example')
  sendRefusals(watch, 'gpu-001', 'anonymous', 100)
  // Its addresses are no secret, and its profile asks for a token.
  sendRefusals(watch, 'gpu-001', 'hardware', 100)
  sendRefusals(watch, 'nobody-knows-it', 'token:t1', 100)
  await watch.settled()
  assert.deepEqual(await kindsOf(setup), [])
  // Where addresses are what admits a node, they are its credential.
  sendRefusals(watch, 'hpc-001', 'hardware', 100)
  await watch.settled()
  assert.deepEqual(await kindsOf(setup), ['repeated_failures hpc-001 open'])
})

const unknownMachine = (at: number) => ({
  macs: [`02:00:00:00:${Math.floor(at / 100)}0:${10 + (at % 90)}`],
  bmcSerial: null,
})

test('R-092: machines that no node is registered for are one alert, counted, however many ask however often', async (t) => {
  const setup = await setUpAlerts(t)
  const plane = await setup.start()
  const watch = watchFailures(plane, plane.alerts, 'lab.example')
  const ask = async (machine: number, times: number): Promise<void> => {
    const refusal = { ...refuse('NODE_NOT_ENROLLED'), about: { hardware: unknownMachine(machine) } }
    for (let at = 0; at < times; at++) watch.take({ refusal, principal: null, source: '192.0.2.9' })
    await watch.settled()
  }
  for (let machine = 0; machine < 60; machine++) await ask(machine, 4)
  assert.deepEqual(await kindsOf(setup), [])
  await ask(0, 1000)
  assert.deepEqual(await kindsOf(setup), ['unknown_hardware lab.example open'])
  // Their number doubles five times until there are 40 of them.
  for (let machine = 1; machine < 40; machine++) {
    setup.clock.advance(1000)
    await ask(machine, 100)
  }
  const [alert] = await setup.unresolved()
  assert.match(alert?.reason ?? '', /^32 machines asked to join by hardware that is not registered/)
  assert.deepEqual([await setup.count('alert.raised'), await setup.count('alert.resolved')], [6, 5])

  setup.clock.advance(29 * 60_000)
  await watch.sweep(plane)
  assert.equal((await setup.unresolved()).length, 1)
  setup.clock.advance(60_000)
  await watch.sweep(plane)
  assert.deepEqual(await kindsOf(setup), [])
})

test('R-092: what another plane has refused is counted, too', async (t) => {
  const setup = await setUpAlerts(t)
  const plane = await setup.start()
  const watch = watchFailures(plane, plane.alerts, 'lab.example')
  const body = { code: 'NODE_NOT_ENROLLED', reported_macs: unknownMachine(1).macs, reported_bmc_serial: null }
  const stranger = { actor: 'anonymous', source: '192.0.2.9', correlation: null }
  for (let at = 0; at < 5; at++) {
    const outcome = await plane.store.commit({
      reads: [],
      writes: [],
      entries: [entry(stranger, at, 'refused', {}, body)],
    })
    assert(outcome !== 'lost-race')
    plane.feed.publish({ ...outcome, origin: 'elsewhere' })
  }
  await watch.settled()
  assert.deepEqual(await kindsOf(setup), ['unknown_hardware lab.example open'])
})

test('after a restart an alert about failures is given its quiet time again', async (t) => {
  const setup = await setUpAlerts(t)
  await setup.register('gpu-001')
  const first = await setup.start()
  const before = watchFailures(first, first.alerts, 'lab.example')
  sendRefusals(before, 'gpu-001', 'node:gpu-001', 5)
  await before.settled()
  const restarted = await setup.start()
  const after = watchFailures(restarted, restarted.alerts, 'lab.example')
  setup.clock.advance(29 * 60_000)
  await after.sweep(restarted)
  assert.equal((await setup.unresolved()).length, 1)
  setup.clock.advance(60_000)
  await after.sweep(restarted)
  assert.equal((await setup.unresolved()).length, 0)
})

test("an offline root's intermediate and a server certificate that cannot be renewed raise alerts as they age", async (t) => {
  const offline = await setUp(t, { rootOut: tempFolder(t), intermediateLifetimeMs: 100 * day })
  const authority = await offline.open({ serverLifetimeMs: 90 * day, intermediateLifetimeMs: 100 * day })
  const feed = openFeed()
  const alerts = await openUnresolvedAlerts(offline.store, feed)
  const core = { ...offline, feed, random: systemRandom }
  const servers = () => ({ node: authority.serverIdentity() })
  const look = async (): Promise<string[]> => {
    await reconcileSource(core, alerts, agingSource(core.clock, authority, servers))
    return [...alerts.all()].map(({ kind, severity }) => `${kind} ${severity}`).sort()
  }
  assert.deepEqual(await look(), [])
  offline.clock.advance(51 * day)
  assert.deepEqual(await look(), ['authority_aging warning'])
  offline.clock.advance(15 * day)
  assert.deepEqual(await look(), ['authority_aging warning', 'server_certificate_aging warning'])
  offline.clock.advance(36 * day)
  assert.deepEqual(await look(), [
    'authority_aging critical',
    'authority_aging critical',
    'server_certificate_aging critical',
  ])
})
