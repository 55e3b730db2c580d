// Ruling 3: a machine comes back with another key while the plane still holds its old channel open. Its old connection is
// blackholed, as when it lost power: nobody tells the plane that it is gone.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { pingEveryMs, pongWithinMs } from '#wire/channel/channel.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { startFaultProxy, type FaultProxy } from '../process/fault-proxy.ts'
import type { Json } from '../process/operator-call.ts'
import { evidenceOf } from '../fakes/agent-words.ts'
import { openQuietTime, type QuietTime } from '../process/quiet-time.ts'
import { rawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { conditionsOf, journalOf, makeToken, nodeOf, refusal, succeeded } from './ask-plane.ts'

const slow = { withinMs: 60_000 }
/** Above what the plane needs to see that a connection is silent, and the grace after that. */
const patient = { withinMs: 100_000, everyMs: 200 }
const graceMs = 4000

type Network = { readonly plane: Plane; readonly proxy: FaultProxy; readonly quiet: QuietTime }

/** The plane tells nodes the address of the proxy: the same port on another loopback address. */
const network = async (scope: Scope): Promise<Network> => {
  const names = ['--server-name', '127.0.0.2', '--server-name', '127.0.0.1']
  const quiet = openQuietTime(tempFolder(scope))
  const plane = await startPlane(scope, { args: names, env: quiet.env })
  succeeded(await plane.api('PATCH', '/v1/domain', { set: { livenessGraceMs: graceMs } }))
  succeeded(
    await plane.api('POST', '/v1/profiles', {
      name: 'hpc-reject',
      from: 'hpc-diskless',
      set: { onActiveConflict: 'reject' },
    }),
  )
  // As short as it may be: two pings without an answer.
  succeeded(await plane.api('PATCH', '/v1/profiles/hpc-diskless', { set: { probeSilenceMs: 6000 } }))
  const { nodePort: port } = plane
  const proxy = await startFaultProxy(scope, { host: '127.0.0.1', port }, { host: '127.0.0.2', port })
  return { plane, proxy, quiet }
}

const register = async (plane: Plane, id: string, profile: string, mac: string): Promise<void> =>
  void succeeded(await plane.api('POST', '/v1/nodes', { id, profile, macs: [mac] }))

/** A diskless machine at power-on: its hardware, and nothing it remembers. */
const boot = (t: Scope, plane: Plane, mac: string): Agent => {
  const { nodeUrl: url, domain, rootFingerprint } = plane
  const hardware = path.join(tempFolder(t), 'hardware.json')
  fs.writeFileSync(hardware, JSON.stringify({ macs: [mac], bmc_serial: null }))
  return startAgent(t, {
    join: formatJoinString({ url, domain, rootFingerprint, secret: null, marked: true }),
    args: ['--key-storage', 'memory', '--hardware-file', hardware],
  })
}

const openAlerts = async (plane: Plane, id: string): Promise<string[]> => {
  const { alerts } = (await plane.api('GET', '/v1/alerts')).body
  return alerts.filter(({ subject }: Json) => subject === id).map(({ kind }: Json) => kind)
}

const untilConnected = (plane: Plane, id: string, epoch: number): Promise<Json> =>
  eventually(
    `${id} to be connected in epoch ${epoch}`,
    async () => {
      const node = await nodeOf(plane, id)
      return node.epoch === epoch && node.membership === 'active' && node.channel_open ? node : null
    },
    slow,
  )

/** A wait that failed, with what the plane and the agent have to say about it. */
const explained = async (wait: Promise<unknown>, plane: Plane, id: string, agent: Agent): Promise<void> => {
  try {
    await wait
  } catch (error) {
    const asked = async (): Promise<readonly string[]> => {
      const journal = await journalOf(plane, { node: id })
      return [JSON.stringify(await nodeOf(plane, id)), ...journal.slice(-40).map(({ atMs, type }) => `${atMs} ${type}`)]
    }
    // A plane that does not answer must not hide what it was waited for.
    const said = [...(await asked().catch((fault: unknown) => [String(fault)])), agent.stderr(), plane.stderr()]
    throw new Error(said.map((text) => text.slice(-4000)).join('\n'), { cause: error })
  }
}

/** Power is lost, and comes back: the old process and its socket say nothing more. */
const reboot = async (t: Scope, { plane, proxy }: Network, agent: Agent, mac: string): Promise<Agent> => {
  proxy.freeze()
  await agent.kill9()
  return boot(t, plane, mac)
}

describe('a machine that lost its key while its old channel is still open', { concurrency: true }, () => {
  // One each: what one of them does to its network must not happen to the other.
  const started = shared((scope) => Promise.all([network(scope), network(scope), startPlane(scope)]))
  const [waiting, probing, orderly] = [() => started()[0], () => started()[1], () => started()[2]]

  test('ruling 3: under reject it waits out the grace, says so in agent status, and is back when it ends', async (t) => {
    const { plane, quiet } = waiting()
    const mac = '52:54:00:00:01:01'
    await register(plane, 'reject-1', 'hpc-reject', mac)
    const agent = boot(t, plane, mac)
    await untilConnected(plane, 'reject-1', 1)
    const again = await reboot(t, waiting(), agent, mac)

    const status = await eventually(
      'the agent to say that it waits',
      async () => {
        const { code, stdout } = await again.status()
        return code !== 0 && /ALREADY_ACTIVE/.test(stdout) ? stdout : null
      },
      slow,
    )
    assert.match(JSON.parse(status).sentences.join(' '), /is enrolling[\s\S]*active with another key[\s\S]*tries again/)
    assert.match(again.stderr(), /Asking again until the grace of that node ends/)
    assert.deepEqual(await conditionsOf(plane, 'reject-1'), ['spoof_suspected'])
    assert.equal((await nodeOf(plane, 'reject-1')).epoch, 1)

    // A ping, and no answer to it for as long as the plane waits for one.
    for (let passedMs = 0; passedMs < pongWithinMs; passedMs += pingEveryMs) await quiet.pass(plane, pingEveryMs + 1000)
    await quiet.pass(plane, graceMs)
    const ended = eventually('the grace to end', async () => (await nodeOf(plane, 'reject-1')).epoch === 2, patient)
    await explained(ended, plane, 'reject-1', again)
    await untilConnected(plane, 'reject-1', 2)
    const story = (await journalOf(plane, { node: 'reject-1' })).map(({ type }) => type)
    const turns = ['node.confirmed', 'node.second_holder', 'node.lapsed', 'node.superseded', 'host.enrolled']
    assert.deepEqual(
      story.filter((type) => turns.includes(type)),
      ['host.enrolled', ...turns, 'node.confirmed'],
    )
    // It came in by hardware alone: whether it was the one that was suspected is for an operator to say.
    assert.deepEqual(await conditionsOf(plane, 'reject-1'), ['spoof_suspected'])
    await eventually('the agent to say that it works', async () => (await again.status()).code === 0, slow)
  })

  test('ruling 3: under probe it is back within seconds: two silences of the old channel, and the journal says so', async (t) => {
    const { plane } = probing()
    const mac = '52:54:00:00:01:02'
    await register(plane, 'probe-1', 'hpc-diskless', mac)
    const agent = boot(t, plane, mac)
    const before = await untilConnected(plane, 'probe-1', 1)
    const again = await reboot(t, probing(), agent, mac)
    const rebootedMs = performance.now()
    await untilConnected(plane, 'probe-1', 2)
    assert.ok(performance.now() - rebootedMs >= 6000, 'not before two silences of three seconds')

    const [, enrolled] = await journalOf(plane, { node: 'probe-1', type: 'host.enrolled' })
    assert.deepEqual([enrolled.body.probe, enrolled.body.method], ['silent', 'hardware'])
    const [superseded] = await journalOf(plane, { node: 'probe-1', type: 'node.superseded' })
    assert.deepEqual([superseded.body.was, superseded.body.superseded], ['active', 'an active identity'])
    assert.deepEqual(await journalOf(plane, { node: 'probe-1', type: 'node.lapsed' }), [])
    const { sessions, certificates } = await nodeOf(plane, 'probe-1')
    assert.equal(sessions.length, 1)
    assert.notEqual(certificates[0].serial, before.certificates[0].serial)
    await eventually('the agent to say that it works', async () => (await again.status()).code === 0, slow)
  })

  test('P1: silence admits only after as long as the profile says, and an operator has to look at it', async () => {
    const { plane } = probing()
    const mac = '52:54:00:00:01:03'
    const set = { probeSilenceMs: 12_000 }
    succeeded(await plane.api('POST', '/v1/profiles', { name: 'hpc-slow', from: 'hpc-diskless', set }))
    await register(plane, 'silent-1', 'hpc-slow', mac)
    const direct = { ...(await plane.target()), url: `https://127.0.0.1:${plane.nodePort}` }
    const hardware = { macs: [mac], bmc_serial: null }
    const first = rawNode(direct, 'ed25519', evidenceOf('first'))
    succeeded(await first.enrollByHardware(hardware))
    const channel = await first.openChannel()
    assert.ok('frames' in channel, JSON.stringify(channel))
    await channel.frame('hello')

    const early = rawNode(direct, 'ed25519', evidenceOf('early'))
    assert.deepEqual(refusal(await early.enrollByHardware(hardware)), [409, 'ALREADY_ACTIVE'])
    assert.deepEqual(await conditionsOf(plane, 'silent-1'), ['spoof_suspected'])

    // As a process that is stopped by a signal: its connection stays, and nothing answers on it.
    channel.stopReading()
    const silentSinceMs = performance.now()
    const second = rawNode(direct, 'ed25519', evidenceOf('second'))
    const soon = await second.enrollByHardware(hardware)
    assert.deepEqual(refusal(soon), [503, 'BUSY'])
    assert.ok(soon.body.retry_after_ms > 0 && soon.body.retry_after_ms <= 10_000, JSON.stringify(soon.body))
    const epoch = await eventually(
      'the second caller to be admitted',
      async () => {
        const reply = await second.enrollByHardware(hardware)
        return reply.status === 200 ? reply.body.epoch : null
      },
      { withinMs: 40_000, everyMs: 500 },
    )
    assert.equal(epoch, 2)
    assert.ok(performance.now() - silentSinceMs >= 11_500, 'admitted before the silence was over')

    const alertsOf = async (): Promise<Json[]> => {
      const { alerts } = (await plane.api('GET', '/v1/alerts')).body
      return alerts.filter(({ subject, state }: Json) => subject === 'silent-1' && state !== 'resolved')
    }
    const kinds = async (): Promise<string[]> => (await alertsOf()).map(({ kind }) => kind).sort()
    succeeded(await second.confirm())
    await eventually('both alerts', async () => (await kinds()).length === 2, slow)
    assert.deepEqual(await kinds(), ['spoof_suspected', 'superseded_by_hardware'])
    assert.deepEqual(await conditionsOf(plane, 'silent-1'), ['spoof_suspected'])
    const raised = (await alertsOf()).find(({ kind }) => kind === 'superseded_by_hardware')
    assert.match(raised?.reason, /of silence.*instance second00.*before it:.*instance first000/)
    const [superseded] = await journalOf(plane, { node: 'silent-1', type: 'node.superseded' })
    assert.match(superseded.body.claimant, /52:54:00:00:01:03.*instance second00/)
    assert.match(superseded.body.holder, /instance first000/)
    assert.ok(superseded.body.silent_ms >= 12_000)

    const acknowledged = await plane.muster('alert', 'ack', raised?.id)
    assert.equal(acknowledged.code, 0, acknowledged.stderr)
    assert.deepEqual(await kinds(), ['spoof_suspected'])
  })

  test('P1: a diskless machine that restarts in order is back at once, without an alert', async (t) => {
    const plane = orderly()
    const mac = '52:54:00:00:01:04'
    await register(plane, 'orderly-1', 'hpc-diskless', mac)
    const agent = boot(t, plane, mac)
    await untilConnected(plane, 'orderly-1', 1)
    // One that does not know yet that its channel is open leaves without a word.
    await eventually('the agent to know it', () => agent.stderr().includes('"channel open"'), slow)
    await agent.stop()
    boot(t, plane, mac)
    await untilConnected(plane, 'orderly-1', 2)
    const [superseded] = await journalOf(plane, { node: 'orderly-1', type: 'node.superseded' })
    const { was, closed_by_holder: closed, silent_ms: silentMs } = superseded.body
    assert.deepEqual([was, closed], ['active', true])
    assert.ok(silentMs < 30_000, 'it waited for a silence')
    assert.match(superseded.body.holder, /instance/)
    assert.match(superseded.body.claimant, /52:54:00:00:01:04.*instance/)
    assert.deepEqual(await openAlerts(plane, 'orderly-1'), [])
  })

  test('ruling 3: under prove another key is refused and suspected; a token made with --replace admits it and cuts the old channel', async () => {
    const { plane } = probing()
    const [first, early] = [
      await makeToken(plane, { node: 'prove-1' }),
      // From before the node was active: for an active one there are none without --replace.
      await makeToken(plane, { node: 'prove-1' }),
    ]
    const direct = { ...(await plane.target()), url: `https://127.0.0.1:${plane.nodePort}` }
    const [node, other] = [rawNode(direct), rawNode(direct)]
    succeeded(await node.enrollByToken(first.secret))
    const channel = await node.openChannel()
    assert.ok('frames' in channel, JSON.stringify(channel))
    await channel.frame('hello')

    assert.deepEqual(refusal(await plane.api('POST', '/v1/tokens', { node: 'prove-1' })), [409, 'ALREADY_ACTIVE'])
    assert.deepEqual(refusal(await other.enrollByToken(early.secret)), [409, 'ALREADY_ACTIVE'])
    assert.deepEqual(await conditionsOf(plane, 'prove-1'), ['spoof_suspected'])
    assert.equal(channel.ended(), false)
    succeeded(await node.confirm())

    const { secret } = await makeToken(plane, { node: 'prove-1', replace: true })
    assert.equal(succeeded(await other.enrollByToken(secret)).epoch, 2)
    await eventually('the old channel to be cut', () => channel.ended(), { withinMs: 1000, everyMs: 5 })
    assert.deepEqual(await conditionsOf(plane, 'prove-1'), [])
    assert.deepEqual(refusal(await node.confirm()), [403, 'CLIENT_CERT_DENIED'])
    assert.equal(succeeded(await other.confirm()).membership, 'active')
  })
})
