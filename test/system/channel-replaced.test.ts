// L7: of two holders of one identity the one with the newer certificate is the right one. A certificate that was replaced
// drains for the process that has replaced it; a process that was never seen with it is a copy. Before, such a copy got the
// channel for as long as the drain lasted, and the machine with the successor was refused as its duplicate.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evidenceOf } from '../fakes/agent-words.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import type { RawNode } from '../process/raw-node.ts'
import { recoverableNode } from '../process/raw-recovery.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { channelOf, endOf, refusedChannel } from './channel-setup.ts'

const plane = sharedPlane()
const record = async (id: string): Promise<Json> => (await plane().api('GET', `/v1/nodes/${id}`)).body
const conditionsOf = async (id: string): Promise<string[]> =>
  (await record(id)).conditions.map(({ name }: Json) => name)

const holders = async (id: string): Promise<{ original: RawNode; copy: RawNode }> => {
  const node = await activeNode(plane(), id)
  return { original: node.copy(evidenceOf('original')), copy: node.copy(evidenceOf('copy')) }
}

const renewed = async (node: RawNode): Promise<void> => {
  const { identity, reply } = await node.renew()
  assert.ok(identity, JSON.stringify(reply.body))
  node.use(identity)
}

const disconnected = (id: string): Promise<true> =>
  eventually('the channel to be gone', async () => (await record(id)).sessions.length === 0)

test('L7: a new process with a certificate that still drains is refused, and the one with the successor gets the channel', async () => {
  const { original, copy } = await holders('drained')
  await renewed(original)
  const first = await channelOf(original)
  first.destroy()
  await disconnected('drained')
  assert.deepEqual(await refusedChannel(copy, {}), [409, 'DUPLICATE_IDENTITY'])
  const { reply } = await copy.renew()
  assert.deepEqual([reply.status, reply.body.code], [409, 'DUPLICATE_IDENTITY'])
  assert.deepEqual(
    [(await record('drained')).membership, await conditionsOf('drained')],
    ['active', ['duplicate_identity']],
  )
  const restarted = original.copy(evidenceOf('restarted'))
  const channel = await channelOf(restarted)
  assert.deepEqual(await refusedChannel(copy, {}), [409, 'DUPLICATE_IDENTITY'])
  assert.equal(channel.ended(), false)
  channel.destroy()
})

test('L7: the process that has rotated opens another channel with the certificate that drains, and is no copy', async () => {
  const { original } = await holders('rotated')
  const late = original.copy(evidenceOf('original'))
  const first = await channelOf(original)
  await renewed(original)
  const second = await channelOf(original)
  const third = await channelOf(late)
  assert.deepEqual(await conditionsOf('rotated'), [])
  for (const channel of [first, second, third]) channel.destroy()
})

test('L7: a copy that is connected is cut when the machine with the newer certificate comes, and both are named', async () => {
  const { original, copy } = await holders('overtaken')
  await renewed(original)
  const older = await channelOf(copy)
  const channel = await channelOf(original)
  assert.equal((await endOf(older))?.code, 'REPLACED')
  const [{ name, evidence }] = (await record('overtaken')).conditions
  assert.equal(name, 'duplicate_identity')
  assert.match(evidence.claimant, /instance copy0000/)
  assert.match(evidence.holder, /instance original/)
  assert.equal(channel.ended(), false)
  assert.deepEqual(await refusedChannel(copy.copy(evidenceOf('again')), {}), [409, 'DUPLICATE_IDENTITY'])
  channel.destroy()
})

test('L7: an older counter at a rehearsal is an alert about a second holder', async () => {
  const machine = await recoverableNode(plane(), 'rehearsing')
  for (let round = 0; round < 2; round++) {
    const { identity, reply } = await machine.node.renew()
    assert.ok(identity, JSON.stringify(reply.body))
    machine.node.use(identity)
    assert.equal((await machine.node.confirm()).status, 200)
  }
  // With the counter of its enrollment: the machine it was copied from has renewed since.
  const { body } = await machine.rehearse()
  assert.deepEqual([body.outcome ?? body.code, body.step ?? 'refused'], ['failed', 'counter'])
  assert.ok((await conditionsOf('rehearsing')).includes('duplicate_identity'))
})
