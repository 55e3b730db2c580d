// One machine in the registries of two domains: the domain that activates it tells the other, which only warns.

import assert from 'node:assert/strict'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { eventually } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import { rawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const hardware = { macs: ['52:54:00:00:00:17'], bmc_serial: 'CN7X' }

const register = async (plane: Plane, id: string): Promise<void> => {
  const { status } = await plane.api('POST', '/v1/nodes', { id, profile: 'hpc-diskless', ...hardware })
  assert.equal(status, 201)
}

const activate = async (plane: Plane) => {
  const node = rawNode(await plane.target())
  assert.equal((await node.enrollByHardware(hardware)).status, 200)
  assert.equal((await node.confirm()).status, 200)
  return node
}

const conditionsOf = async (plane: Plane, id: string): Promise<string[]> => {
  const { body } = await plane.api('GET', `/v1/nodes/${id}`)
  return body.conditions.map(({ name }: { name: string }) => name)
}

const introduce = async (t: TestContext, from: Plane, to: Plane): Promise<void> => {
  const file = path.join(tempFolder(t), 'there.json')
  const made = await from.muster('peer-domain', 'self', '--out', file)
  assert.equal(made.code, 0, made.stderr)
  const added = await to.muster('peer-domain', 'add', file)
  assert.equal(added.code, 0, added.stderr)
}

test('the same machine active in two domains is a warning in both, blocks nothing, and ends with one of them', async (t) => {
  const [a, b] = await Promise.all([
    startPlane(t, { args: ['--domain', 'a.example'] }),
    startPlane(t, { args: ['--domain', 'b.example'] }),
  ])
  await register(a, 'node-a')
  await register(b, 'node-b')
  await introduce(t, b, a)
  await introduce(t, a, b)

  await activate(a)
  const first = await b.api('GET', '/v1/nodes/node-b')
  assert.deepEqual(first.body.conditions, [], 'registered elsewhere is a reservation, not a claim')

  await activate(b)
  await eventually('both domains to warn', async () => {
    const [there, here] = await Promise.all([conditionsOf(a, 'node-a'), conditionsOf(b, 'node-b')])
    return there.includes('active_elsewhere') && here.includes('active_elsewhere')
  })
  const { body } = await a.api('GET', '/v1/nodes/node-a')
  assert.match(body.conditions[0].reason, /b\.example says that this machine is active there as node-b/)
  assert(!body.scheduling.reasons.includes('active_elsewhere'), 'it is advice, and takes no work away')

  await b.api('POST', '/v1/nodes/node-b/quarantine', { reason: 'it belongs to a.example now' })
  await eventually('the warning to end', async () => (await conditionsOf(a, 'node-a')).length === 0)
  const { body: peers } = await a.api('GET', '/v1/peer-domains')
  assert.deepEqual(
    peers.peer_domains.map(({ name, active_there }: { name: string; active_there: number }) => [name, active_there]),
    [['b.example', 0]],
  )
})

test('a peer domain that is away holds nothing up, and gets the current state once it is back', async (t) => {
  const a = await startPlane(t, { args: ['--domain', 'a.example'] })
  let b = await startPlane(t, { args: ['--domain', 'b.example'] })
  await register(a, 'node-a')
  await register(b, 'node-b')
  await introduce(t, b, a)
  await introduce(t, a, b)
  await activate(b)
  await b.stop()
  await activate(a)
  b = await b.restart()
  await eventually('both domains to warn', async () => {
    const [there, here] = await Promise.all([conditionsOf(a, 'node-a'), conditionsOf(b, 'node-b')])
    return there.includes('active_elsewhere') && here.includes('active_elsewhere')
  })
})

test('what no peer has signed for this domain just now is refused and changes nothing', async (t) => {
  const a = await startPlane(t, { args: ['--domain', 'a.example'] })
  const target = await a.target()
  const claims = { domain: 'b.example', to: 'a.example', at_ms: Date.now(), machines: [] }
  const head = `claims1.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  for (const statement of [`${head}.${'A'.repeat(86)}`, 'claims1.x.y', head]) {
    const { status, body } = await nodeCall(target, null, 'POST', '/v1/claims', { statement })
    assert.deepEqual([status, body.code], [403, 'CLAIM_INVALID'])
  }
})
