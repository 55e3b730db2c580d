// What nodes run under: sent when it changes, with revisions, and kept by the agent while the plane is away.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { channelOf } from './channel-setup.ts'

const run = async (plane: Plane, ...args: string[]): Promise<void> => {
  const { code, stderr } = await plane.muster(...args)
  assert.equal(code, 0, stderr)
}

/** Of the profile `mine`, in which the tests' nodes are. */
const change = async (plane: Plane, lifetimeMs: number): Promise<void> => {
  const set = { 'certificate.lifetimeMs': lifetimeMs }
  const { status, body } = await plane.api('PATCH', '/v1/profiles/mine', { set })
  assert.equal(status, 200, JSON.stringify(body))
}

const record = async (plane: Plane, id: string): Promise<Json> => (await plane.api('GET', `/v1/nodes/${id}`)).body

const bodiesOf = (channel: RawChannel, type: string): Json[] =>
  channel.frames.filter((frame) => frame.type === type).map(({ body }) => body)

/** The newest configuration that fits. */
const configWith = (channel: RawChannel, lifetimeMs: number): Promise<Json> =>
  eventually(`a configuration with ${lifetimeMs} ms`, () =>
    bodiesOf(channel, 'config').findLast(({ profile }) => profile.lifetime_ms === lifetimeMs),
  )

const hello = (config: Json, trust: Json) => ({
  agent_version: 'raw',
  capabilities: [],
  config_revision: config.revision,
  trust_revision: trust.revision,
})

const hour = 3_600_000

test('a node is sent what it lacks and nothing else, and every change of its profile, in order', async (t) => {
  const plane = await startPlane(t)
  await run(plane, 'profile', 'create', 'mine', '--from', 'gpu-cloud')
  await run(plane, 'profile', 'create', 'other', '--from', 'gpu-cloud')
  const [node, bystander] = [await activeNode(plane, 'n-1', 'mine'), await activeNode(plane, 'n-2', 'other')]
  const first = await channelOf(node)
  const [config, trust] = [await first.frame('config'), await first.frame('trust')].map(({ body }) => body)
  assert.deepEqual(trust.roots, node.target.roots)
  assert.deepEqual([config.profile.name, config.profile.lifetime_ms, config.vcluster], ['mine', 24 * hour, null])
  assert.deepEqual(config.endpoints.runtime, [plane.nodeUrl])

  const [again, aside] = [await channelOf(node, { hello: hello(config, trust) }), await channelOf(bystander)]
  await aside.frame('config')
  for (const hours of [10, 11, 12]) {
    await change(plane, hours * hour)
    await configWith(again, hours * hour)
  }
  const newest = await configWith(again, 12 * hour)
  const sent = bodiesOf(again, 'config').map(({ profile }) => profile.lifetime_ms / hour)
  assert.deepEqual([sent, bodiesOf(again, 'trust')], [[10, 11, 12], []])
  assert.equal(new Set([config, ...bodiesOf(again, 'config')].map(({ revision }) => revision)).size, 4)
  assert.equal(bodiesOf(aside, 'config').length, 1)

  await change(plane, 24 * hour)
  assert.equal((await configWith(again, 24 * hour)).revision, config.revision)
  assert.notEqual(newest.revision, config.revision)
})

test('a burst of changes ends with the last of them at every node', async (t) => {
  const plane = await startPlane(t)
  await run(plane, 'profile', 'create', 'mine', '--from', 'gpu-cloud')
  const channels = await Promise.all(
    Array.from({ length: 6 }, async (_, at) => channelOf(await activeNode(plane, `n-${at}`, 'mine'))),
  )
  await Promise.all(channels.map((channel) => channel.frame('config')))
  const changes = Array.from({ length: 30 }, (_, at) => (at + 2) * hour)
  for (const lifetimeMs of changes) await change(plane, lifetimeMs)
  for (const channel of channels) {
    const newest = await configWith(channel, changes.at(-1) ?? 0)
    assert.equal(bodiesOf(channel, 'config').at(-1).revision, newest.revision)
    const lifetimes = bodiesOf(channel, 'config').map(({ profile }) => profile.lifetime_ms)
    assert.deepEqual(
      lifetimes.slice(1),
      lifetimes.slice(1).toSorted((a, b) => a - b),
    )
  }
})

const lastConfig = (agent: Agent): Json => {
  const file = path.join(agent.state, 'config.json')
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : null
}

test('an agent applies a change, goes on under it while the plane is away, and gets the next after restarts of both', async (t) => {
  const plane = await startPlane(t)
  await run(plane, 'profile', 'create', 'mine', '--from', 'gpu-cloud')
  const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001', '--profile', 'mine') })
  const inForce = (current: Agent, hours: number): Promise<Json> =>
    eventually(`a certificate life of ${hours} hours on its disk`, () => {
      const config = lastConfig(current)
      return config !== null && config.profile.lifetime_ms === hours * hour ? config : null
    })
  // An agent that was without its plane tries again after up to half a minute.
  const applied = (current: Plane, config: Json): Promise<true> =>
    eventually(
      'the plane to know',
      async () => {
        const { config_revision: revision, channel_open: open } = await record(current, 'gpu-001')
        return open && revision === config.revision
      },
      { withinMs: 60_000 },
    )
  await inForce(agent, 24)
  await run(plane, 'profile', 'set', 'mine', 'certificate.lifetimeMs=12h')
  const changed = await inForce(agent, 12)
  await applied(plane, changed)

  await plane.stop()
  await agent.stop()
  const alone = agent.restart()
  const status = await eventually('its status without a plane', () => {
    const file = path.join(alone.state, 'status.json')
    const read = JSON.parse(fs.readFileSync(file, 'utf8'))
    return read.pid === alone.pid && read.troubles.some(({ place }: { place: string }) => place === 'channel') && read
  })
  assert.deepEqual([status.profile, status.channel.open], ['mine', false])
  assert.deepEqual(lastConfig(alone), changed)

  const back = await plane.restart()
  await applied(back, changed)
  await run(back, 'profile', 'set', 'mine', 'certificate.lifetimeMs=6h')
  await applied(back, await inForce(alone, 6))
})
