// What an operator changes at one plane reaches the nodes whose channels another plane has.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { act, conditionsOf, succeeded } from '../compliance/ask-plane.ts'
import { channelOf } from '../system/channel-setup.ts'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'

test('an assignment, a change of a vCluster and one of the domain reach a channel on another replica', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const [here, there] = await startReplicaPlanes(t, 2, (await postgresDatabase(t, 'migrated')).env)
  assert.ok(here && there)
  const channel = await channelOf(await activeNode(there, 'gpu-001'))
  const told = (what: string, fits: (body: Json) => boolean): Promise<Json> =>
    eventually(`a configuration ${what}`, () => {
      const newest = channel.frames.findLast(({ type }) => type === 'config')?.body
      return newest !== undefined && fits(newest) ? newest : null
    })
  await told('of maintenance mode', ({ vcluster }) => vcluster === null)
  succeeded(await here.api('POST', '/v1/vclusters', { name: 'training' }))
  await act(here, 'gpu-001', 'assign', { to: 'training' })
  const { overlay } = await told('of training', ({ vcluster }) => vcluster === 'training')
  assert.equal(overlay.vcluster_revision, 1)
  const worker = { name: 'worker', command: ['/bin/sleep', '1000'] }
  succeeded(await here.api('PATCH', '/v1/vclusters/training', { overlay: { files: [], services: [worker] } }))
  await told('with a worker', ({ overlay: now }) => now.vcluster_revision === 2 && now.services[0]?.name === 'worker')
  const timeSync = { name: 'chronyd', command: ['/usr/sbin/chronyd'] }
  succeeded(await here.api('PATCH', '/v1/domain', { set: { 'maintenance.timeSync': timeSync } }))
  await told('with time sync', ({ overlay: now }) => now.services.length === 2)
  // And what the node says there is known here.
  const said = { config_revision: 1, applied: true, detail: null, services: [], drift: ['service worker: not running'] }
  channel.send('overlay_state', said)
  await eventually('the condition', async () => (await conditionsOf(here, 'gpu-001')).includes('config_drift'))
  await act(here, 'gpu-001', 'unassign')
  await told('of maintenance mode again', ({ vcluster }) => vcluster === null)
  assert.deepEqual(await conditionsOf(there, 'gpu-001'), [])
})
