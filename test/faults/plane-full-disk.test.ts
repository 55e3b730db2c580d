// The disk fills in the middle of a storm of enrollments. Callers are told the truth, and with room it goes on.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import * as path from 'node:path'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import type { NodeTarget } from '../process/node-call.ts'
import type { Reply } from '../process/operator-call.ts'
import { journalEntries, newSecret, storedCertificates, targetByAddress } from '../process/plane-records.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { queueTask } from '../process/task-host.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs } from '../process/tmpfs.ts'

const nodes = 160
const lanes = 16
/** Filled when so many are in: the rest meets a disk with room for a few more groups. */
const fillAfter = 20
const leaveBytes = 100_000
/** In service before all that. */
const inService = 8
const isInService = (id: string): boolean => id.startsWith('steady-')

type Caller = { readonly id: string; readonly secret: string; readonly node: RawNode }

const invite = async (plane: Plane, target: NodeTarget): Promise<readonly Caller[]> => {
  const ids = Array.from({ length: nodes }, (_, number) => `gpu-${String(number).padStart(3, '0')}`)
  return Promise.all(ids.map(async (id) => ({ id, secret: await newSecret(plane, id), node: rawNode(target) })))
}

/** In so many lanes; `onReply` hears of every answer as it comes. */
const enrollAll = async (
  callers: readonly Caller[],
  onReply: (caller: Caller, reply: Reply) => void,
): Promise<void> => {
  const waiting = [...callers]
  const lane = async (): Promise<void> => {
    for (let caller = waiting.shift(); caller !== undefined; caller = waiting.shift())
      onReply(caller, await caller.node.enrollByToken(caller.secret))
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

/** Every success that was answered is in the store, and nothing else is. */
const checkAnswers = async (plane: Plane, callers: readonly Caller[], told: ReadonlyMap<string, Reply>) => {
  for (const { id } of callers) {
    const [stored, ...more] = (await storedCertificates(plane, id)).map(({ der }) => der)
    const reply = told.get(id)
    const given =
      reply === undefined ? undefined : new X509Certificate(reply.body.certificate_chain).raw.toString('base64')
    assert.equal(stored, given, reply === undefined ? `${id} was told of a failure` : `${id} was told of a success`)
    assert.deepEqual(more, [], id)
    const { body } = await plane.api('GET', `/v1/nodes/${id}`)
    assert.equal(body.membership, given === undefined ? 'registered' : 'enrolled', id)
  }
  const entries = await journalEntries(plane, { type: 'host.enrolled' })
  const enrolled = entries.map(({ node }) => node).filter((node) => !isInService(node))
  assert.deepEqual(enrolled.toSorted(), [...told.keys()].toSorted())
  const { body } = await plane.api('POST', '/v1/journal/verify', {})
  assert.deepEqual([body.intact, body.broken], [true, null])
}

type InService = { readonly id: string; readonly node: RawNode; readonly channel: RawChannel }

const putInService = async (plane: Plane, target: NodeTarget): Promise<readonly InService[]> =>
  Promise.all(
    Array.from({ length: inService }, async (_, number) => {
      const id = `steady-${number}`
      const node = rawNode(target)
      assert.equal((await node.enrollByToken(await newSecret(plane, id))).status, 200)
      const channel = await node.openChannel()
      assert.ok('frames' in channel, JSON.stringify(channel))
      return { id, node, channel }
    }),
  )

const revoke = (plane: Plane, { id }: InService): Promise<Reply> =>
  plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'compromised' })

test('a full disk in the middle of enrollments: no caller gets a success that is not durable, and with room it goes on', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 32 << 20)
  const invited = await startPlane(t, { data: path.join(disk.folder, 'data') })
  const target = await targetByAddress(invited)
  const callers = await invite(invited, target)
  // A log that has just been folded into the database has no room to reuse.
  await invited.stop()
  const plane = await invited.restart()
  const steady = await putInService(plane, target)
  const told = new Map<string, Reply>()
  const failed: Caller[] = []

  await enrollAll(callers, (caller, reply) => {
    if (reply.status === 200) {
      told.set(caller.id, reply)
      if (told.size === fillAfter) disk.fill(leaveBytes)
      return
    }
    assert.deepEqual([reply.status, reply.body.code], [503, 'DISK_TROUBLE'], JSON.stringify(reply.body))
    assert.match(reply.body.next, /make room/i)
    failed.push(caller)
  })
  assert.ok(told.size >= fillAfter && failed.length > 0, `${told.size} enrolled, ${failed.length} failed`)
  await checkAnswers(plane, callers, told)

  disk.fill(0)
  for (const one of steady.slice(0, 4)) {
    const { status, body } = await revoke(plane, one)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal((await one.node.confirm()).status, 403)
  }
  const unready = await plane.api('GET', '/readyz')
  assert.equal(unready.status, 503)
  assert.equal(unready.body.ready, false)
  assert.match(unready.body.reasons.join('\n'), /the store cannot be written to: .*full/)

  disk.free()
  const [first, ...others] = failed
  assert.ok(first)
  // Once the reserve is whole again, which is looked at every second.
  await eventually('the plane to be ready', async () => (await plane.api('GET', '/readyz')).status === 200, {
    withinMs: 15_000,
    everyMs: 100,
  })
  const reply = await first.node.enrollByToken(first.secret)
  assert.equal(reply.status, 200, 'there is room, and it does not go on by itself')
  told.set(first.id, reply)
  assert.deepEqual((await plane.api('GET', '/readyz')).body, { ready: true, reasons: [], warnings: [] })

  await plane.stop()
  const again = await plane.restart()
  await checkAnswers(again, callers, told)
  await enrollAll(others, (caller, after) => {
    assert.equal(after.status, 200, `the token of ${caller.id} was used up by a fault of ours`)
    told.set(caller.id, after)
  })
  await checkAnswers(again, callers, told)
  for (const { id, node } of callers.slice(0, 20)) assert.equal((await node.confirm()).status, 200, id)
})

test('a plane without calls notices that there is room again, and takes the result of a task that it had no room for', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 32 << 20)
  const plane = await startPlane(t, { data: path.join(disk.folder, 'data') })
  const node = await activeNode(plane, 'gpu-000')
  const task = await queueTask(plane, 'gpu-000', 'collect-diagnostics')
  assert.equal((await node.call('GET', '/v1/nodes/gpu-000/tasks/wait')).body.tasks.length, 1)
  const output = { head: 'x'.repeat(8192), tail: 'y'.repeat(8192), bytes: 99_999 }
  const result = {
    state: 'completed',
    code: null,
    exit_code: 0,
    detail: null,
    started_at: null,
    evidence: null,
    output,
  }
  const answer = (): Promise<Reply> => node.call('POST', `/v1/nodes/gpu-000/tasks/${task}/result`, result)
  disk.fill(0)
  const notTaken = await answer()
  assert.deepEqual([notTaken.status, notTaken.body.code], [503, 'DISK_TROUBLE'], JSON.stringify(notTaken.body))
  assert.equal((await plane.api('GET', `/v1/tasks/${task}`)).body.state, 'dispatched')
  const refused = await plane.muster('token', 'create', '--node', 'gpu-001')
  assert.equal(refused.code, 75, refused.stderr)
  assert.match(refused.stderr, /DISK_TROUBLE/)
  assert.match(refused.stderr, /make room/i)
  disk.free()
  await eventually('the plane to be ready', async () => (await plane.api('GET', '/readyz')).status === 200, {
    withinMs: 15_000,
    everyMs: 100,
  })
  assert.deepEqual((await answer()).body, { state: 'completed' })
  assert.equal((await plane.api('GET', `/v1/tasks/${task}`)).body.result.output.bytes, 99_999)
})
