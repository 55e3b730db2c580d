// Ruling 16: whatever this machine's clock says, the agent finds out whether it talks to its plane before it says anything
// that matters. The planes of these tests live ten years before or after us; so it is our clock that is wrong.

import assert from 'node:assert/strict'
import * as net from 'node:net'
import { test, type TestContext } from 'node:test'
import type { Connected, PlaneTarget } from '#agent/link/connect-at.ts'
import { connectPlane } from '#agent/link/connect-plane.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { openJudgedClock } from '#agent/core/judged-clock.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { generateKey } from '#pki/keys.ts'
import { systemClock } from '#platform/clock.ts'
import { exchangeOn } from '#platform/http-exchange.ts'
import { systemTimers } from '#platform/timers.ts'
import { connectingAgent } from '../fakes/connecting-agent.ts'
import {
  pinned,
  serverOf,
  startDatedPlane,
  statementOf,
  timesAt,
  type DatedPlane,
  type Times,
} from '../fakes/dated-plane.ts'
import { cleanup } from '../process/cleanup.ts'

const day = 86_400_000
const never = new AbortController().signal
const now = timesAt(systemClock.nowMs())
const worlds = [
  { what: 'ten years ahead', times: timesAt(systemClock.nowMs() - 3650 * day) },
  { what: 'ten years behind', times: timesAt(systemClock.nowMs() + 3650 * day) },
] as const

const unmarked = { domain: 'example.test', marked: false }

const targetOf = (plane: DatedPlane, { trust, client }: Times, change: Partial<PlaneTarget> = {}): PlaneTarget => ({
  url: plane.url,
  trust,
  plane: unmarked,
  client,
  pinned,
  ...change,
})
const nothingPinned = ({ url, trust, plane, client }: PlaneTarget): PlaneTarget => ({ url, trust, plane, client })
const closed = (outcome: Connected | PlaneFailure): string => {
  if (outcome.kind === 'connected') outcome.socket.destroy()
  return outcome.kind
}
const classOf = (outcome: Connected | PlaneFailure): string | null =>
  'trouble' in outcome ? outcome.trouble.class : null
/** Says something on it, so that the plane sees who is at the other end. */
const talk = async (outcome: Connected | PlaneFailure): Promise<void> => {
  assert.equal(outcome.kind, 'connected')
  if (outcome.kind !== 'connected') return
  const request = { method: 'POST', path: '/hello', authority: 'localhost', json: {}, longestAnswer: 1024 } as const
  await exchangeOn(systemTimers, outcome.socket, { ...request, timeoutMs: 5_000 }, never)
}
const seenBy = (plane: DatedPlane): [string, boolean][] => plane.calls.map(({ path, shown }) => [path, shown])
const paths = (plane: DatedPlane): string[] => plane.calls.map(({ path }) => path)

test('with a right clock one handshake is enough, and the time is not asked for', async (t) => {
  const plane = await startDatedPlane(t, now)
  const agent = connectingAgent(t)
  await talk(await connectPlane(agent, targetOf(plane, now), never))
  assert.deepEqual(seenBy(plane), [['/hello', true]])
  assert.equal(plane.connections, 1)
})

for (const { what, times } of worlds) {
  test(`a clock ${what} is corrected by the plane, and the agent connects`, async (t) => {
    const plane = await startDatedPlane(t, times)
    const agent = connectingAgent(t)
    await talk(await connectPlane(agent, targetOf(plane, times), never))
    assert.ok(Math.abs(agent.clock.nowMs() - times.atMs) < 60_000)
    assert.deepEqual(seenBy(plane), [
      ['/v1/challenge', false],
      ['/hello', true],
    ])
    assert.equal(agent.troubles.get('clock')?.class, 'clock_skew')
    assert.ok(Math.abs(agent.record.now().figures.clockSkewMs - agent.clock.offsetMs()) < 60_000)
  })

  test(`a clock ${what} that has been corrected once is not corrected again`, async (t) => {
    const plane = await startDatedPlane(t, times)
    const agent = connectingAgent(t)
    agent.clock.learn(times.atMs, 300_000, agent.clock.reading())
    await talk(await connectPlane(agent, targetOf(plane, times), never))
    assert.deepEqual(seenBy(plane), [['/hello', true]])
    // Judged without our certificate, which is shown afterwards.
    assert.equal(plane.connections, 2)
  })

  test(`a clock ${what} without a pinned key fails closed: nothing is asked and nothing learned`, async (t) => {
    const plane = await startDatedPlane(t, times)
    const agent = connectingAgent(t)
    const outcome = await connectPlane(agent, nothingPinned(targetOf(plane, times)), never)
    assert.deepEqual([outcome.kind, classOf(outcome)], ['untrusted', 'clock_skew'])
    assert.deepEqual([plane.calls, agent.clock.offsetMs()], [[], 0])
  })

  test(`at first enrollment a clock ${what} fails closed and both times are named`, async (t) => {
    const plane = await startDatedPlane(t, times)
    const trust = { kind: 'fingerprint', rootFingerprint: times.authorities.root.certificate.sha256 } as const
    const target = nothingPinned(targetOf(plane, times, { trust, client: null }))
    const outcome = await connectPlane(connectingAgent(t), target, never)
    assert.equal(classOf(outcome), 'clock_skew')
    const said = 'trouble' in outcome ? (outcome.trouble.text.match(/\d{4}-\d\d-\d\dT[\d:.]+Z/g) ?? []) : []
    const [from = '', to = '', here = ''] = said.map((time) => Date.parse(time))
    assert.ok(Number(from) <= times.atMs && times.atMs < Number(to))
    assert.ok(Math.abs(Number(here) - systemClock.nowMs()) < 60_000)
  })

  test(`a clock ${what} and a forged statement: nothing is learned`, async (t) => {
    const plane = await startDatedPlane(t, times)
    plane.challenge = (nonce) => statementOf(nonce, times.atMs, generateKey('p256'))
    const agent = connectingAgent(t)
    const outcome = await connectPlane(agent, targetOf(plane, times), never)
    assert.deepEqual([outcome.kind, classOf(outcome), agent.clock.offsetMs()], ['untrusted', 'clock_skew', 0])
    assert.deepEqual(paths(plane), ['/v1/challenge'])
  })

  test(`a clock ${what} and a statement made for another nonce: nothing is learned`, async (t) => {
    const plane = await startDatedPlane(t, times)
    const recorded = statementOf('r'.repeat(32), times.atMs)
    plane.challenge = () => recorded
    const agent = connectingAgent(t)
    const outcome = await connectPlane(agent, targetOf(plane, times), never)
    assert.deepEqual([outcome.kind, classOf(outcome), agent.clock.offsetMs()], ['untrusted', 'clock_skew', 0])
  })

  test(`a clock ${what}: a server under another root is not even asked for the time`, async (t) => {
    const stranger = await startDatedPlane(t, timesAt(times.atMs))
    const agent = connectingAgent(t)
    const outcome = await connectPlane(agent, targetOf(stranger, times), never)
    assert.deepEqual([outcome.kind, classOf(outcome)], ['untrusted', 'server_tls_untrusted'])
    assert.deepEqual([stranger.calls, agent.clock.offsetMs()], [[], 0])
  })

  test(`a clock ${what}: a certificate that has expired at the stated time too has expired`, async (t) => {
    const plane = await startDatedPlane(t, times, { held: serverOf(times, times.atMs - 100 * day) })
    const outcome = await connectPlane(connectingAgent(t), targetOf(plane, times), never)
    assert.deepEqual([outcome.kind, classOf(outcome)], ['untrusted', 'server_tls_untrusted'])
    assert.deepEqual(paths(plane), ['/v1/challenge'])
  })

  test(`a clock ${what}: behind a load balancer the second connection may lead to another plane of the same trust`, async (t) => {
    const plane = await startDatedPlane(t, times)
    const replica = await startDatedPlane(t, times)
    const agent = connectingAgent(t)
    agent.clock.learn(times.atMs, 300_000, agent.clock.reading())
    const port = await inTurns(t, [plane.port, replica.port])
    const url = new URL(`https://localhost:${port}/v1/nodes/gpu-001/confirm`)
    await talk(await connectPlane(agent, targetOf(plane, times, { url }), never))
    assert.deepEqual([seenBy(plane), seenBy(replica)], [[], [['/hello', true]]])
  })

  test(`a clock ${what}: a server that replaces the plane between two connections is found, and gets nothing`, async (t) => {
    const plane = await startDatedPlane(t, times)
    const impostors = [
      [await startDatedPlane(t, timesAt(times.atMs)), 'server_tls_untrusted'],
      [await startDatedPlane(t, times, { held: serverOf(times, times.atMs - 100 * day) }), 'clock_skew'],
    ] as const
    for (const [impostor, failure] of impostors) {
      const agent = connectingAgent(t)
      agent.clock.learn(times.atMs, 300_000, agent.clock.reading())
      const port = await inTurns(t, [plane.port, impostor.port])
      const url = new URL(`https://localhost:${port}/v1/nodes/gpu-001/confirm`)
      const outcome = await connectPlane(agent, nothingPinned(targetOf(plane, times, { url })), never)
      assert.deepEqual([outcome.kind, classOf(outcome)], ['untrusted', failure])
      assert.deepEqual([plane.calls, impostor.calls], [[], []])
    }
  })
}

test('a server that has expired while our clock is right is said to have expired, and the clock is not suspected', async (t) => {
  const plane = await startDatedPlane(t, now, { held: serverOf(now, now.atMs - 100 * day) })
  const agent = connectingAgent(t)
  const outcome = await connectPlane(agent, targetOf(plane, now), never)
  assert.deepEqual([outcome.kind, classOf(outcome)], ['untrusted', 'server_tls_untrusted'])
  assert.deepEqual([agent.clock.offsetMs(), agent.troubles.get('clock')], [0, undefined])
  assert.ok('trouble' in outcome && outcome.trouble.evidence['valid_to'] !== null)
})

test('at a time before our own certificate was made no server is trusted that does not first state the time', async (t) => {
  const agent = connectingAgent(t)
  const setBack = { ...agent, clock: openJudgedClock({ ...systemClock, nowMs: () => now.atMs - 200 * day }) }
  agent.keeper.keep({
    identity: { current: { issuedAtMs: now.atMs }, clockToleranceMs: 300_000 } as Identity,
    request: null,
  })
  // Perhaps one whose certificate ran out since: it was good at the time this machine believes in.
  const silent = await startDatedPlane(t, now)
  silent.challenge = () => 'whatever'
  const outcome = await connectPlane(setBack, targetOf(silent, now), never)
  assert.deepEqual([outcome.kind, classOf(outcome)], ['untrusted', 'clock_skew'])
  assert.deepEqual(seenBy(silent), [['/v1/challenge', false]])
  const plane = await startDatedPlane(t, now)
  await talk(await connectPlane(setBack, targetOf(plane, now), never))
  assert.deepEqual(seenBy(plane), [
    ['/v1/challenge', false],
    ['/hello', true],
  ])
  assert.ok(Math.abs(setBack.clock.nowMs() - now.atMs) < 60_000)
})

test('a recovery server that has expired blocks recovery', async (t) => {
  const plane = await startDatedPlane(t, now, { held: serverOf(now, now.atMs - 100 * day) })
  const target = targetOf(plane, now, { client: null, purpose: 'recovery' })
  assert.equal(classOf(await connectPlane(connectingAgent(t), target, never)), 'recovery_enrollment_blocked')
})

test('a machine joins again by the fingerprint it knows, with a clock that is wrong and a key that is pinned', async (t) => {
  const { times } = worlds[0]
  const plane = await startDatedPlane(t, times)
  const trust = { kind: 'fingerprint', rootFingerprint: times.authorities.root.certificate.sha256 } as const
  const outcome = await connectPlane(connectingAgent(t), targetOf(plane, times, { trust, client: null }), never)
  assert.equal(closed(outcome), 'connected')
})

test('a plane behind a path of its own is asked for the time there', async (t) => {
  const { times } = worlds[0]
  const plane = await startDatedPlane(t, times)
  const url = new URL('/muster/v1/nodes/gpu-001/confirm', plane.url)
  assert.equal(closed(await connectPlane(connectingAgent(t), targetOf(plane, times, { url }), never)), 'connected')
  assert.deepEqual(paths(plane), ['/muster/v1/challenge'])
})

test('any of several roots will do, in Node’s check and in ours', async (t) => {
  for (const times of [now, worlds[1].times]) {
    const plane = await startDatedPlane(t, times)
    const others = [timesAt(times.atMs), times].flatMap(({ trust }) => (trust.kind === 'roots' ? trust.roots : []))
    const target = targetOf(plane, times, { trust: { kind: 'roots', roots: others } })
    assert.equal(closed(await connectPlane(connectingAgent(t), target, never)), 'connected')
  }
})

test('IPv6 addresses are connected to, with a right clock and with a wrong one', async (t) => {
  for (const times of [now, worlds[0].times]) {
    const plane = await startDatedPlane(t, times, { address: '::1' })
    const url = new URL(`https://[::1]:${plane.port}/v1/nodes/gpu-001/confirm`)
    const outcome = await connectPlane(connectingAgent(t), targetOf(plane, times, { url }), never)
    assert.equal(closed(outcome), 'connected')
    assert.equal(outcome.kind === 'connected' && outcome.address, '::1')
  }
})

test('an agent that is being stopped does not wait for a server that says nothing', async (t) => {
  const silent = net.createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  cleanup(t, () => void silent.close())
  const { port } = silent.address() as net.AddressInfo
  const stopping = new AbortController()
  const target = { url: new URL(`https://localhost:${port}/`), trust: now.trust, plane: unmarked, client: null }
  const connecting = connectPlane(connectingAgent(t), target, stopping.signal)
  setTimeout(() => stopping.abort(), 20)
  assert.deepEqual(await connecting, { kind: 'stopped' })
})

/** Connections go to one port after the other; the last takes all that follow. */
const inTurns = async (t: TestContext, ports: readonly number[]): Promise<number> => {
  let count = 0
  const front = net.createServer((client) => {
    const server = net.connect(ports[Math.min(count++, ports.length - 1)] ?? 0, '127.0.0.1')
    for (const socket of [client, server]) socket.on('error', () => undefined)
    client.pipe(server).pipe(client)
    cleanup(t, () => void client.destroy())
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  cleanup(t, () => void front.close())
  return (front.address() as net.AddressInfo).port
}
