// What agents report, as a real plane shows it to Prometheus: added up by vCluster and profile, and node by node.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planeMetrics } from '../../scripts/metrics-page.ts'
import { evidenceOf, reportOf } from '../fakes/agent-words.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { channelOf } from './channel-setup.ts'

const plane = sharedPlane({ args: ['--node-metrics'] })

const textOf = async (path: string): Promise<string> => {
  const { status, body } = await plane().api('GET', path)
  assert.equal(status, 200)
  return String(body)
}
const lines = (text: string, name: string): string[] => text.split('\n').filter((line) => line.startsWith(name))

const taken = (channel: RawChannel, number: number) =>
  eventually(`report ${number} to be taken`, () =>
    channel.frames.some(({ type, body }) => type === 'reported' && body.number >= number),
  )

/** The nodes that have a series, in the order of their names. */
const nodesIn = (text: string): string[] =>
  lines(text, 'muster_node_agent_cert_expiry_seconds{')
    .map((line) => /node="([^"]+)"/.exec(line)?.[1] ?? '')
    .sort()

test('reports are added up by vCluster and profile, and shown by node to who asks for that', async () => {
  await plane().api('POST', '/v1/vclusters', { name: 'training' })
  const channels: RawChannel[] = []
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003']) {
    const node = (await activeNode(plane(), id)).copy(evidenceOf('a'))
    if (id !== 'gpu-001') await plane().api('POST', `/v1/nodes/${id}/assign`, { to: 'training' })
    const channel = await channelOf(node)
    const { renewal, storage } = reportOf('a', 1)
    const failures = { ...renewal.failures, disk_full: 2 }
    const free_bytes = { ...storage.free_bytes, identity: Number(id.slice(-1)) * 1000 }
    channel.send('report', reportOf('a', 1, { renewal: { ...renewal, attempts: 3, failures } }))
    channel.send(
      'report',
      reportOf('a', 2, { renewal: { ...renewal, attempts: 4, failures }, storage: { ...storage, free_bytes } }),
    )
    await taken(channel, 2)
    channels.push(channel)
  }
  const [{ profile }] = (await plane().api('GET', '/v1/nodes')).body.nodes
  const inTraining = `vcluster="training",profile="${profile}"`
  const outside = `vcluster="_none",profile="${profile}"`

  const sums = await textOf('/metrics')
  const isShown = (line: string): void => assert.ok(sums.includes(`${line}\n`), line)
  isShown(`muster_agents_reporting{${inTraining}} 2`)
  isShown(`muster_agents_reporting{${outside}} 1`)
  isShown(`muster_agents_cert_renewal_attempts_total{${inTraining}} 8`)
  isShown(`muster_agents_cert_renewal_failures_total{${inTraining},reason="disk_full"} 4`)
  isShown(`muster_agents_cert_renewal_failures_total{${outside},reason="clock_skew"} 0`)
  isShown(`muster_agents_filesystem_available_min_bytes{${inTraining},use="identity"} 2000`)
  isShown(`muster_node_conditions{${outside},condition="disk_full"} 0`)
  assert.equal(lines(sums, `muster_cert_expiry_min_seconds{${inTraining}}`).length, 1)

  for (const { name, labels } of planeMetrics())
    for (const [, text = ''] of sums.matchAll(new RegExp(`^${name}\\{(.*)\\} `, 'gm')))
      assert.deepEqual([...text.matchAll(/(\w+)="/g)].map(([, label]) => label).sort(), labels.toSorted(), name)

  const byNode = await textOf('/metrics/nodes')
  assert.deepEqual(nodesIn(byNode), ['gpu-001', 'gpu-002', 'gpu-003'])
  assert.ok(byNode.includes(`muster_node_agent_cert_renewal_attempts_total{node="gpu-002",${inTraining}} 4\n`))
  const shards = await Promise.all(['0/2', '1/2'].map((shard) => textOf(`/metrics/nodes?shard=${shard}`)))
  assert.deepEqual(shards.flatMap(nodesIn).sort(), nodesIn(byNode))

  channels[0]?.destroy()
  await eventually('the node to be gone', async () => !nodesIn(await textOf('/metrics/nodes')).includes('gpu-001'))
  for (const channel of channels) channel.destroy()
})

test('a shard that there is not is refused', async () => {
  for (const shard of ['2/2', '0/0', '1', '-1/2', '0/1000']) {
    const { status, body } = await plane().api('GET', `/metrics/nodes?shard=${shard}`)
    assert.deepEqual([status, body.code], [400, 'REQUEST_INVALID'], shard)
  }
})
