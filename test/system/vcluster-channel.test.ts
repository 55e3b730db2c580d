// What a vCluster asks for reaches its nodes over their channels, and what they say of it comes back.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { act, conditionsOf, journalOf, nodeOf, succeeded } from '../compliance/ask-plane.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { channelOf, endOf, frameText } from './channel-setup.ts'

const shared = sharedPlane()

const configs = (channel: RawChannel): Json[] =>
  channel.frames.filter(({ type }) => type === 'config').map(({ body }) => body)

/** The newest, once it fits. */
const config = (channel: RawChannel, what: string, fits: (body: Json) => boolean): Promise<Json> =>
  eventually(`a configuration ${what}`, () => {
    const newest = configs(channel).at(-1)
    return newest !== undefined && fits(newest) ? newest : null
  })

const timeSync = { name: 'chronyd', command: ['/usr/sbin/chronyd', '-d'] }
const worker = { name: 'worker', command: ['{overlay}/bin/work'] }
const overlay = { files: [{ path: 'bin/work', mode: 0o755, content: '#!/bin/sh\n' }], services: [worker] }

const state = (changes: object = {}) => ({
  config_revision: 1,
  applied: true,
  detail: null,
  services: [{ name: 'worker', state: 'running', restarts: 0 }],
  drift: [],
  ...changes,
})

test('a node gets the overlay of its vCluster at once and at every change; other nodes get nothing of it', async () => {
  const plane = shared()
  const [inside, outside] = [await activeNode(plane, 'in-1'), await activeNode(plane, 'out-1')]
  const [channel, aside] = [await channelOf(inside), await channelOf(outside)]
  const maintenance = await config(channel, 'of maintenance mode', ({ vcluster }) => vcluster === null)
  assert.deepEqual(maintenance.overlay, {
    vcluster_revision: 0,
    policy: { enforcement_mode: 'observe', exec_whitelist: [], shell_whitelist: [], regulated: false },
    files: [],
    services: [],
    detect_drift: false,
  })
  await config(aside, 'of maintenance mode', () => true)

  succeeded(await plane.api('POST', '/v1/vclusters', { name: 'training', overlay }))
  await act(plane, 'in-1', 'assign', { to: 'training' })
  const first = await config(channel, 'of training', ({ vcluster }) => vcluster === 'training')
  assert.deepEqual([first.overlay.files, first.overlay.services], [overlay.files, overlay.services])
  assert.deepEqual([first.overlay.vcluster_revision, first.overlay.detect_drift], [1, true])
  succeeded(await plane.api('PATCH', '/v1/vclusters/training', { set: { 'policy.enforcementMode': 'enforce' } }))
  await config(channel, 'that enforces', ({ overlay: now }) => now.policy.enforcement_mode === 'enforce')
  assert.equal(configs(aside).length, 1)

  succeeded(await plane.api('PATCH', '/v1/domain', { set: { 'maintenance.timeSync': timeSync } }))
  const keeping = ({ overlay: now }: Json): boolean => now.services.some(({ name }: Json) => name === 'chronyd')
  assert.deepEqual((await config(channel, 'with time sync', keeping)).overlay.services, [timeSync, worker])
  assert.deepEqual((await config(aside, 'with time sync', keeping)).overlay.services, [timeSync])

  await act(plane, 'in-1', 'unassign')
  const alone = await config(channel, 'of maintenance mode again', ({ vcluster }) => vcluster === null)
  assert.deepEqual([alone.overlay.services, alone.overlay.files], [[timeSync], []])
  assert.equal(alone.revision, configs(aside).at(-1).revision)
  succeeded(await plane.api('PATCH', '/v1/domain', { set: { 'maintenance.timeSync': null } }))
})

test('drift raises a condition and an alert, once, and both are over with it; it is none in maintenance mode', async () => {
  const plane = shared()
  succeeded(await plane.api('POST', '/v1/vclusters', { name: 'drifting' }))
  const node = await activeNode(plane, 'd-1')
  await act(plane, 'd-1', 'assign', { to: 'drifting' })
  const channel = await channelOf(node)
  const drifted = state({ drift: ['file bin/work: changed', 'service worker: not running'] })
  for (let time = 0; time < 3; time++) channel.send('overlay_state', drifted)
  await eventually('the condition', async () => (await conditionsOf(plane, 'd-1')).includes('config_drift'))
  const shown = await nodeOf(plane, 'd-1')
  assert.deepEqual([shown.overlay.drift, shown.scheduling.state], [drifted.drift, 'unavailable'])
  const alertOf = async (): Promise<Json> =>
    (await plane.api('GET', '/v1/alerts')).body.alerts.find(
      ({ kind, node: whose }: Json) => kind === 'config_drift' && whose === 'd-1',
    )
  const alert = await eventually('the alert', alertOf)
  assert.equal(alert.severity, 'warning')

  channel.send('overlay_state', state())
  await eventually('it to be over', async () => !(await conditionsOf(plane, 'd-1')).includes('config_drift'))
  await eventually('the alert to be over', async () => (await alertOf()) === undefined)
  channel.send('overlay_state', state({ applied: false, detail: 'no space left' }))
  await eventually('the failure', async () => (await conditionsOf(plane, 'd-1')).includes('overlay_failed'))
  await act(plane, 'd-1', 'unassign')
  channel.send('overlay_state', drifted)
  await eventually('the failure to be over', async () => (await conditionsOf(plane, 'd-1')).length === 0)
  const entries = await journalOf(plane, { node: 'd-1' })
  assert.deepEqual(
    entries.filter(({ type }) => type.startsWith('node.condition')).map(({ type, body }) => [type, body.condition]),
    [
      ['node.condition_raised', 'config_drift'],
      ['node.condition_cleared', 'config_drift'],
      ['node.condition_raised', 'overlay_failed'],
      ['node.condition_cleared', 'overlay_failed'],
    ],
  )
})

test('what a machine can do is in the store; a frame that does not fit ends the channel', async () => {
  const plane = shared()
  const channel = await channelOf(await activeNode(plane, 'c-1'))
  const capabilities = {
    vcluster: null,
    cpu_cores: 64,
    memory_bytes: 2 ** 39,
    arch: 'x64',
    kernel: '6.12.0',
    accelerators: [{ device: '10de:2330', count: 8 }],
    services: 'systemd',
    wireguard: 'kernel',
  }
  channel.send('capabilities', capabilities)
  await eventually('them in the store', async () => (await nodeOf(plane, 'c-1')).capabilities !== null)
  assert.deepEqual((await nodeOf(plane, 'c-1')).capabilities, capabilities)
  const { stdout } = await plane.muster('node', 'show', 'c-1')
  assert.match(stdout, /can +kernel 6\.12\.0, WireGuard kernel, services by systemd, .*\n +8 x 10de:2330/)
  channel.sendText(frameText(3, 'overlay_state', { ...state(), more: 1 }))
  assert.equal((await endOf(channel))?.code, 'REQUEST_INVALID')
})
