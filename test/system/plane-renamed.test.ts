// A plane that gets another name, with real processes: nobody is stranded, and a node that was away is brought back by recovery.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'

type NodeView = { readonly membership: string; readonly channel_open: boolean; readonly epoch: number }
type NamesView = { readonly names: readonly { readonly name: string; readonly state: string }[] }

const connected = (plane: Plane, id: string): Promise<NodeView> =>
  eventually(
    `${id} to be connected`,
    async () => {
      const node = (await plane.api('GET', `/v1/nodes/${id}`)).body as NodeView
      return node.membership === 'active' && node.channel_open ? node : null
    },
    { withinMs: 40_000 },
  )

const stateOf = async (plane: Plane, name: string): Promise<string | undefined> =>
  ((await plane.api('GET', '/v1/names')).body as NamesView).names.find((one) => one.name === name)?.state

test('a renamed plane keeps its former name until its node knows the new one; a node that was away recovers', async (t) => {
  const [node, recovery] = [await freePort(), await freePort()]
  const listen = { nodeListen: `0.0.0.0:${node}`, recoveryListen: `0.0.0.0:${recovery}` }
  const first = await startPlane(t, { ...listen, args: ['--server-name', '127.0.0.4'] })
  const agent = startAgent(t, { join: await first.token('--node', 'gpu-001') })
  const before = await connected(first, 'gpu-001')

  await first.stop()
  const second = await first.restart({ ...listen, args: ['--server-name', '127.0.0.2'] })
  await connected(second, 'gpu-001')
  await eventually('the former name to go', async () => (await stateOf(second, '127.0.0.4')) === 'dropped', {
    withinMs: 30_000,
  })
  assert.equal((await connected(second, 'gpu-001')).epoch, before.epoch)

  await agent.stop()
  await second.stop()
  const third = await second.restart({ ...listen, args: ['--server-name', '127.0.0.3'] })
  assert.equal(await stateOf(third, '127.0.0.2'), 'kept')
  const plan = await third.muster('domain', 'names', 'drop', '127.0.0.2', '--plan')
  assert.match(plan.stdout, /node gpu-001/)
  const dropped = await third.muster('domain', 'names', 'drop', '127.0.0.2')
  assert.equal(dropped.code, 0, dropped.stderr)
  const back = agent.restart()
  const recovered = await connected(third, 'gpu-001')
  assert.equal(recovered.epoch, before.epoch + 1)
  assert.match(back.stderr(), /is not called 127\.0\.0\.2 in its certificate/)
  assert.doesNotMatch(back.stderr(), /compare the root/)
})
