// Two holders of one identity at two planes: the one with the live channel stays, wherever the other asks. Where the
// plane that has the channel does not answer, nobody is let in until it is given up.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseMs } from '#plane/store/contract/replicas.ts'
import { evidenceOf } from '../fakes/agent-words.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { copyOf, newMachine, nodeOf, untilBack } from '../process/mortal-machine.ts'
import { newSecret } from '../process/plane-records.ts'
import { openRawChannel, type NotOpened, type RawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { checkBothNamed, theCopy, theOriginal, untilRefusedWith } from '../faults/copied-state.ts'
import { peer } from '../peers/peer.ts'
import type { ReplicaDoor } from './enrollment-load.ts'
import { startPlanesBehindOne, untilReady, waitMs, type PlanesBehindOne } from './three-planes.ts'

const three = 'path' in peer('postgres') ? shared<PlanesBehindOne>((scope) => startPlanesBehindOne(scope)) : null

test('a copied state folder, started at another plane: the machine with the live channel stays, the copy is refused', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const { doors, balancer } = three()
  const [first] = doors
  balancer.steer(0)
  const machine = await newMachine(t, first.plane, { id: 'copied', profile: 'gpu-cloud', recovery: 'key' })
  const agent = machine.start()
  await untilBack(machine, agent)
  const copy = copyOf(t, machine)
  balancer.steer(1)
  const sinceMs = performance.now()
  const copied = copy.start()
  await untilRefusedWith(copy, copied, 'DUPLICATE_IDENTITY')
  const refusedAfterMs = performance.now() - sinceMs
  await checkBothNamed(machine, theCopy, theOriginal)
  for (const { plane } of doors) {
    const { body } = await plane.api('GET', '/v1/nodes/copied')
    assert.deepEqual([body.membership, body.sessions.length], ['active', 1], 'the same wherever one asks')
  }
  balancer.steer(null)
  await Promise.all([agent.stop(), copied.stop()])
  assert.equal((await nodeOf(machine)).epoch, 1)
  t.diagnostic(`the copy was told after ${(refusedAfterMs / 1000).toFixed(1)} s of its start`)
})

const identityAt = async (door: ReplicaDoor, id: string): Promise<RawNode> => {
  const node = rawNode(door.target, 'ed25519', evidenceOf(id))
  const enrolled = await node.enrollByToken(await newSecret(door.plane, id))
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  return node
}

const opened = (answer: RawChannel | NotOpened): RawChannel => {
  assert.ok('frames' in answer, JSON.stringify(answer))
  return answer
}

test('the plane with the live channel stands still: a second holder gets 503 and not admission, until the lease is over', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const { doors } = three()
  const [holding, asking, third] = doors
  const node = await identityAt(holding, 'twice')
  const live = opened(await node.openChannel())
  await live.frame('hello')
  const asCopy = (door: ReplicaDoor) =>
    openRawChannel(door.target, node.identity(), 'twice', { evidence: evidenceOf('the-copy') })

  const refused = await asCopy(asking)
  assert.ok('status' in refused)
  assert.deepEqual([refused.status, refused.body.code], [409, 'DUPLICATE_IDENTITY'])
  assert.equal(live.ended(), false)

  holding.plane.signal('SIGSTOP')
  const stopMs = performance.now()
  const told: string[] = []
  const ask = async (number: number): Promise<RawChannel | null> => {
    const answer = await asCopy(number % 2 === 0 ? asking : third)
    if ('frames' in answer) return answer
    told.push(`${answer.status} ${answer.body.code}`)
    return null
  }
  // It asks one after the other and at both planes, and each waits for an answer for as long as pings take.
  const early = await Promise.all([0, 1, 2, 3, 4, 5].map((number) => waitMs(number * 1000).then(() => ask(number))))
  assert.deepEqual(new Set(early), new Set([null]), 'nobody is let in while the holder has its lease')
  const admitted = await eventually('the copy to be let in', () => ask(told.length), {
    withinMs: 2 * leaseMs,
    everyMs: 200,
  })
  const admittedMs = performance.now() - stopMs
  assert.ok(admittedMs > leaseMs - 2000, `it was let in after ${admittedMs} ms, under the lease of the holder`)
  for (const answer of told) assert.match(answer, /^503 /)

  holding.plane.signal('SIGCONT')
  await eventually('the channel of before to be cut', () => live.ended(), { withinMs: 5000 })
  await untilReady(holding.plane)
  // Now it is the copy that has the live channel, wherever the first comes back.
  const back = await eventually('an answer that is no fault of a plane that has just come back', async () => {
    const answer = await openRawChannel(holding.target, node.identity(), 'twice', { evidence: evidenceOf('twice') })
    return 'status' in answer && answer.status === 503 ? null : answer
  })
  assert.ok('status' in back)
  assert.deepEqual([back.status, back.body.code], [409, 'DUPLICATE_IDENTITY'])
  assert.equal(admitted.ended(), false)
  admitted.destroy()
  t.diagnostic(
    `${told.length} times 503 (${[...new Set(told)].join(', ')}); admitted after ${(admittedMs / 1000).toFixed(1)} s`,
  )
})
