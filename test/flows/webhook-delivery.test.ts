// Alerts delivered to a real receiver over real TLS, which fails, hangs, redirects and talks too much; with the plane's
// clock in the hands of the test.

import assert from 'node:assert/strict'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { callReceiver } from '#plane/webhook/call-receiver.ts'
import {
  deliverAlerts,
  type AlertDelivery,
  type CallWebhook,
  type DeliveryOutcome,
} from '#plane/webhook/deliver-alerts.ts'
import { parseNetwork, type Network } from '#platform/ip-address.ts'
import { reconcileNode } from '#plane/alerts/follow-nodes.ts'
import { systemRootsAnd } from '#platform/post-once.ts'
import { systemTimers } from '#platform/timers.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { failsWith, startReceiver, takes, type WebhookReceiver } from '../process/webhook-receiver.ts'
import { day } from './authority-setup.ts'
import { setUpAlerts } from './alert-setup.ts'

const secret = 'a secret of 24 letters'
const loopback = [parseNetwork('127.0.0.0/8') as Network]
const roots = systemRootsAnd([])

const setUp = async (t: TestContext) => {
  const alerts = await setUpAlerts(t)
  const receiver = await startReceiver(t, secret)
  const plane = await alerts.start()
  const outcomes: DeliveryOutcome[] = []
  let resolves = async (): Promise<readonly string[]> => ['127.0.0.1']
  const target = { url: new URL(receiver.url), networks: loopback, roots: [...roots, receiver.root] }
  const call: CallWebhook = (message, signal) =>
    callReceiver({ timers: systemTimers, resolve: () => resolves() }, target, message, signal)
  /** As after a start of the plane. */
  const start = (): AlertDelivery => {
    const delivery = deliverAlerts(plane, { secret, call, onOutcome: (outcome) => void outcomes.push(outcome) })
    cleanup(t, () => delivery.stop())
    return delivery
  }
  const raise = async (id: string): Promise<void> => {
    await alerts.raise(plane.feed, id, 'cert_expired', 'it ran out')
    await reconcileNode(plane, plane.alerts, id)
  }
  const clear = async (id: string): Promise<void> => {
    await alerts.clear(plane.feed, id, 'cert_expired')
    await reconcileNode(plane, plane.alerts, id)
  }
  for (const id of ['gpu-1', 'gpu-2', 'gpu-3']) await alerts.register(id)
  return {
    ...alerts,
    receiver,
    outcomes,
    start,
    raise,
    clear,
    resolvesTo: (...addresses: string[]) => void (resolves = async () => addresses),
    told: () => receiver.taken.map(({ body }) => `${body.subject} ${body.state}`),
    /** Time passes until the receiver was called once more. */
    async untilCalled(times: number) {
      await eventually(`${times} calls`, () => {
        plane.timers.advance(60_000)
        return receiver.received.length >= times
      })
    },
  }
}

const tells = (receiver: WebhookReceiver, count: number): Promise<unknown> =>
  eventually(`${count} deliveries`, () => receiver.taken.length >= count)

test('every change of an alert is delivered once, in order, signed, with the fields that are promised and no others', async (t) => {
  const it = await setUp(t)
  it.start()
  await it.raise('gpu-1')
  await it.raise('gpu-2')
  await it.clear('gpu-1')
  await tells(it.receiver, 3)
  assert.deepEqual(it.told(), ['gpu-1 open', 'gpu-2 open', 'gpu-1 resolved'])
  assert.equal(it.receiver.forged(), 0)
  const [first, , last] = it.receiver.taken
  assert.equal(first?.path, '/hook?a=b')
  assert.deepEqual(Object.keys(first?.body).sort(), [
    ...['domain', 'id', 'kind', 'node', 'plane_time', 'reason', 'severity', 'since', 'state', 'subject'],
  ])
  assert.equal(first?.body.id, last?.body.id)
  assert.notEqual(first?.delivery, last?.delivery)
  assert.equal(it.receiver.connectionsAtOnce(), 1)
  // The receiver has it before its sender hears so.
  await eventually('the last outcome', () => it.outcomes.length >= 3)
  assert.deepEqual(it.outcomes, ['delivered', 'delivered', 'delivered'])
})

test('a receiver that fails is asked again until it takes what it was sent, under the same delivery id', async (t) => {
  const it = await setUp(t)
  it.receiver.answer = failsWith(503)
  it.start()
  await it.raise('gpu-1')
  await it.raise('gpu-2')
  await it.untilCalled(3)
  it.receiver.answer = takes
  await eventually('both', () => {
    it.clock.advance(60_000)
    return it.receiver.taken.length === 2
  })
  const tries = it.receiver.received.filter(({ body }) => body.subject === 'gpu-1')
  assert.equal(new Set(tries.map(({ delivery }) => delivery)).size, 1)
  // Nothing else was tried meanwhile: it is the receiver that has trouble.
  assert.deepEqual(it.told(), ['gpu-1 open', 'gpu-2 open'])
})

test('what a receiver does not want holds up no other alert, and its own later changes keep their order', async (t) => {
  const it = await setUp(t)
  it.receiver.answer = (received, response) =>
    (received.body.subject === 'gpu-1' ? failsWith(422) : takes)(received, response)
  it.start()
  await it.raise('gpu-1')
  await it.clear('gpu-1')
  await it.raise('gpu-2')
  await tells(it.receiver, 1)
  assert.deepEqual(it.told(), ['gpu-2 open'])
  it.receiver.answer = takes
  await eventually('the rest', () => {
    it.clock.advance(60_000)
    return it.receiver.taken.length === 3
  })
  assert.deepEqual(it.told(), ['gpu-2 open', 'gpu-1 open', 'gpu-1 resolved'])
})

test('a redirect is not followed', async (t) => {
  const it = await setUp(t)
  const elsewhere = http.createServer((_request, response) => void response.end())
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  cleanup(t, () => void elsewhere.close())
  let visits = 0
  elsewhere.on('connection', () => visits++)
  const { port } = elsewhere.address() as AddressInfo
  it.receiver.answer = failsWith(307, { location: `http://127.0.0.1:${port}/inside` })
  it.start()
  await it.raise('gpu-1')
  await it.untilCalled(2)
  assert.equal(visits, 0)
  assert.deepEqual(new Set(it.outcomes), new Set(['failed']))
})

test('an answer without end is cut, and its status counts', async (t) => {
  const it = await setUp(t)
  let sent = 0
  it.receiver.answer = (received, response) => {
    response.writeHead(200)
    const more = (): void => {
      while (!response.destroyed && sent < 64 * 1024 * 1024) {
        sent += 65_536
        if (!response.write(Buffer.alloc(65_536, 'x'))) return void response.once('drain', more)
      }
    }
    response.on('close', () => it.receiver.taken.push(received))
    more()
  }
  it.start()
  await it.raise('gpu-1')
  await tells(it.receiver, 1)
  await eventually('the outcome', () => it.outcomes.length > 0)
  assert.deepEqual(it.outcomes, ['delivered'])
  assert.ok(sent < 16 * 1024 * 1024, `${sent} bytes were taken`)
})

test('an alert that is delivered but not acknowledged in time by a receiver that hangs is delivered again after a restart', async (t) => {
  const it = await setUp(t)
  it.receiver.answer = () => {}
  const before = it.start()
  await it.raise('gpu-1')
  await it.raise('gpu-2')
  await eventually('the first call', () => it.receiver.received.length === 1)
  await before.stop()
  it.receiver.answer = takes
  it.start()
  await tells(it.receiver, 2)
  assert.deepEqual(it.told(), ['gpu-1 open', 'gpu-2 open'])
  assert.equal(it.receiver.received[0]?.delivery, it.receiver.received[1]?.delivery)
})

test('a restart delivers what came while no plane delivered, and nothing that was delivered before', async (t) => {
  const it = await setUp(t)
  // What is under way when it stops is delivered again: so not before the answer was received.
  const settled = (count: number) => eventually('the outcome', () => it.outcomes.length === count)
  const first = it.start()
  await it.raise('gpu-1')
  await settled(1)
  await first.stop()
  await it.raise('gpu-2')
  const second = it.start()
  await settled(2)
  await second.stop()
  it.start()
  await it.raise('gpu-3')
  await tells(it.receiver, 3)
  assert.deepEqual(it.told(), ['gpu-1 open', 'gpu-2 open', 'gpu-3 open'])
})

test('after a day of trying an alert is given up; an old one is delivered only while it is true', async (t) => {
  const it = await setUp(t)
  await it.raise('gpu-1')
  await it.raise('gpu-2')
  await it.clear('gpu-2')
  it.clock.advance(2 * day)
  it.receiver.answer = failsWith(500)
  const delivery = it.start()
  await it.untilCalled(2)
  assert.deepEqual(new Set(it.receiver.received.map(({ body }) => body.subject)), new Set(['gpu-1']))
  assert.equal(delivery.waiting(), 1)
  await eventually('it to be given up', () => {
    it.clock.advance(3_600_000)
    return it.outcomes.includes('given_up')
  })
  assert.equal(delivery.waiting(), 0)
  assert.deepEqual(it.told(), [])
})

test('a name that suddenly stands for an address behind the plane is not called, and is again when it does not', async (t) => {
  const it = await setUp(t)
  it.start()
  it.resolvesTo('169.254.169.254', '10.0.0.1', '::1')
  await it.raise('gpu-1')
  await eventually('an attempt', () => it.outcomes.length > 0)
  assert.equal(it.receiver.received.length, 0)
  it.resolvesTo('10.0.0.1', '127.0.0.1')
  await it.untilCalled(1)
  await tells(it.receiver, 1)
})

test('a receiver that takes the connection and says nothing is left after ten seconds', async (t) => {
  const it = await setUp(t)
  it.receiver.answer = () => {}
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const attempt = callReceiver(
    { timers, resolve: async () => ['127.0.0.1'] },
    { url: new URL(it.receiver.url), networks: loopback, roots: [it.receiver.root] },
    { headers: {}, body: '{}' },
    new AbortController().signal,
  )
  await eventually('the call', () => it.receiver.received.length === 1)
  timers.advance(10_000)
  assert.deepEqual(await attempt, { attempt: 'trouble', why: 'ETIMEDOUT' })
})

test('a receiver whose certificate is not trusted, or is for another name, is sent nothing', async (t) => {
  const it = await setUp(t)
  const message = { headers: {}, body: '{}' }
  const attempt = async (url: string, trusted: readonly string[]) =>
    callReceiver(
      { timers: systemTimers, resolve: async () => ['127.0.0.1'] },
      { url: new URL(url), networks: loopback, roots: trusted },
      message,
      new AbortController().signal,
    )
  const { port, root } = it.receiver
  assert.equal((await attempt(`https://localhost:${port}/`, roots)).attempt, 'trouble')
  const otherName = await attempt(`https://other.example:${port}/`, [root])
  assert.deepEqual(otherName, { attempt: 'trouble', why: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  assert.equal(it.receiver.received.length, 0)
})
