// T15 and T20: what becomes of the work on a node that is decommissioned or quarantined, with real agents.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { activeNode } from '../process/active-node.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { runMuster } from '../process/run-muster.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { journalOf, membershipOf, nodeOf, refusal, succeeded } from './ask-plane.ts'

const domain = shared(async (scope) => {
  const plane = await startPlane(scope)
  succeeded(await plane.api('POST', '/v1/vclusters', { name: 'training' }))
  return plane
})

/** What was said of allocations on a node, oldest first. */
const outbox = async (plane: Plane, node: string): Promise<Json[]> =>
  (await journalOf(plane, { node })).filter(({ type }) => type.startsWith('allocation.'))

const commitOf = ({ operation }: Json): string => operation.replace(/-\d+$/, '')

/** Two allocations on a node that is put into vCluster `training`. */
const placeWork = async (plane: Plane, id: string): Promise<void> => {
  succeeded(await plane.api('POST', `/v1/nodes/${id}/assign`, { to: 'training' }))
  for (const job of [`${id}-a`, `${id}-b`]) {
    const body = { id: job, node: id, vcluster: 'training', owner: 'slurm' }
    succeeded(await plane.api('POST', '/v1/allocations', body))
  }
}

const workingAgent = async (t: TestContext, plane: Plane, id: string): Promise<Member> => {
  const member = await joinMember(t, plane, { id, profile: 'gpu-cloud' })
  await untilConnected([member])
  await placeWork(plane, id)
  return member
}

test('T15: decommission warns of running work, and needs --force; what the node did stays in the store', async (t) => {
  const plane = domain()
  const member = await workingAgent(t, plane, 'busy-1')
  const warned = await plane.muster('node', 'decommission', 'busy-1')
  assert.equal(warned.code, 1)
  assert.match(warned.stderr, /NODE_STATE_CONFLICT[\s\S]*2 allocations running[\s\S]*--force/)
  assert.equal(await membershipOf(plane, 'busy-1'), 'active')
  const before = await journalOf(plane, { node: 'busy-1' })

  const forced = await plane.muster('node', 'decommission', 'busy-1', '--force', '-o', 'json')
  assert.equal(forced.code, 0, forced.stderr)
  const { membership, allocations, sessions } = await nodeOf(plane, 'busy-1')
  assert.deepEqual([membership, allocations, sessions], ['revoked', 0, []])
  const entries = await journalOf(plane, { node: 'busy-1' })
  assert.deepEqual(entries.slice(0, before.length), before, 'nothing in the store has changed')
  const [revoked] = entries.filter(({ type }) => type === 'host.revoked')
  const taken = (await outbox(plane, 'busy-1')).filter(({ type }) => type === 'allocation.released')
  assert.deepEqual(
    taken.map(({ body }) => [body.allocation, body.owner, body.forced, body.why]),
    ['busy-1-a', 'busy-1-b'].map((job) => [job, 'slurm', true, 'its node was decommissioned']),
  )
  assert.deepEqual([...new Set(taken.map(commitOf))], [commitOf(revoked)])
  assert.notEqual((await member.ended).code, 0, 'its agent has been told, and ends')
  // Only a new registration lets the machine back, in a new epoch.
  assert.deepEqual(refusal(await plane.api('POST', '/v1/tokens', { node: 'busy-1' })), [403, 'NODE_REVOKED'])
})

test('T15: a node whose work has moved is decommissioned without force', async () => {
  const plane = domain()
  await activeNode(plane, 'moved-1')
  await placeWork(plane, 'moved-1')
  succeeded(await plane.api('POST', '/v1/nodes/moved-1/drain', {}))
  assert.deepEqual(
    (await outbox(plane, 'moved-1')).slice(2).map(({ type, body }) => [type, body.allocation]),
    ['moved-1-a', 'moved-1-b'].map((job) => ['allocation.release_requested', job]),
  )
  const draining = await plane.api('POST', '/v1/nodes/moved-1/decommission', {})
  assert.match(draining.body.detail, /in use: 2 allocations running/)
  for (const job of ['moved-1-a', 'moved-1-b']) succeeded(await plane.api('POST', `/v1/allocations/${job}/release`, {}))
  assert.equal((await nodeOf(plane, 'moved-1')).scheduling.state, 'drained')
  succeeded(await plane.api('POST', '/v1/nodes/moved-1/decommission', {}))
})

test('T20: quarantine releases allocations through the journal, alerts, and blocks renewal and dispatch', async (t) => {
  const plane = domain()
  const member = await workingAgent(t, plane, 'odd-1')
  succeeded(await plane.api('POST', '/v1/nodes/odd-1/quarantine', { reason: 'odd traffic' }))
  const [quarantined] = await journalOf(plane, { node: 'odd-1', type: 'node.quarantined' })
  const taken = (await outbox(plane, 'odd-1')).slice(2)
  assert.deepEqual(
    taken.map(({ type, body }) => [type, body.allocation, body.forced]),
    ['odd-1-a', 'odd-1-b'].map((job) => ['allocation.released', job, true]),
  )
  assert.deepEqual([...new Set(taken.map(commitOf))], [commitOf(quarantined)])
  const { scheduling, allocations, certificates } = await nodeOf(plane, 'odd-1')
  assert.deepEqual([scheduling.state, allocations, certificates], ['unavailable', 0, []])
  const again = { id: 'odd-1-c', node: 'odd-1', vcluster: 'training', owner: 'slurm' }
  assert.deepEqual(refusal(await plane.api('POST', '/v1/allocations', again)), [409, 'NODE_NOT_SCHEDULABLE'])

  const alertOf = async (): Promise<Json> =>
    (await plane.api('GET', '/v1/alerts?all=true')).body.alerts.find(
      ({ kind, subject }: Json) => kind === 'quarantined' && subject === 'odd-1',
    )
  const alert = await eventually('somebody to be called', alertOf)
  assert.deepEqual([alert.severity, alert.state], ['critical', 'open'])
  assert.match(alert.reason, /^odd traffic \(by operator:/)

  // Its agent asks, and gets nothing.
  await runMuster(['agent', 'renew', '--now', '--state', member.state])
  const refused = await eventually('the renewal to be refused', async () =>
    (await journalOf(plane, { node: 'odd-1', type: 'refused' })).find(({ body }) => body.code === 'NODE_QUARANTINED'),
  )
  assert.equal(refused.node, 'odd-1')
  assert.deepEqual(await journalOf(plane, { node: 'odd-1', type: 'node.renewed' }), [])
  const bare = await activeNode(plane, 'odd-2')
  succeeded(await plane.api('POST', '/v1/nodes/odd-2/quarantine', { reason: 'odd traffic' }))
  assert.deepEqual(refusal((await bare.renew()).reply), [403, 'NODE_QUARANTINED'])
  succeeded(await plane.api('POST', '/v1/nodes/odd-1/release', {}))
  await eventually('the alert to end with the quarantine', async () => (await alertOf()).state === 'resolved')
})
