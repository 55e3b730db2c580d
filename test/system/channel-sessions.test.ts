// How long a channel lives: beside another, until its certificate has served, and not a frame longer than it is welcome.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import type { RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane } from '../process/start-plane.ts'
import { channelOf, endOf } from './channel-setup.ts'

const plane = sharedPlane()
const record = async (id: string): Promise<Json> => (await plane().api('GET', `/v1/nodes/${id}`)).body
const sessionsOf = async (id: string): Promise<number[]> =>
  (await record(id)).sessions.map(({ number }: { number: number }) => number)

const set = async (...args: string[]): Promise<void> => {
  const { code, stderr } = await plane().muster(...args)
  assert.equal(code, 0, stderr)
}

const renewed = async (node: RawNode): Promise<void> => {
  const { identity, reply } = await node.renew()
  assert.ok(identity, JSON.stringify(reply.body))
  node.use(identity)
}

test('an epoch has two channels at once, one with its current and one with its pending certificate; a third ends the oldest', async () => {
  const node = await activeNode(plane(), 'two')
  const first = await channelOf(node)
  await renewed(node)
  const second = await channelOf(node)
  const numbers = [first, second].map(({ frames }) => frames[0].body.session)
  assert.deepEqual(await sessionsOf('two'), numbers)
  assert.ok(numbers[1] > numbers[0])
  assert.deepEqual([first.ended(), second.ended()], [false, false])

  const third = await channelOf(node)
  assert.equal((await endOf(first))?.code, 'REPLACED')
  assert.deepEqual(await sessionsOf('two'), [numbers[1], third.frames[0].body.session])
  first.send('applied', { config_revision: 9, trust_revision: 0, persisted: true, detail: null })
  third.send('still-here', {})
  await third.frame('unknown_type')
  assert.equal(second.ended(), false)
  assert.equal((await record('two')).config_revision, 0)
  for (const channel of [second, third]) channel.destroy()
})

test('the channel of a certificate that was replaced drains until its deadline', async () => {
  await set('domain', 'set', 'drainMs=2s')
  const node = await activeNode(plane(), 'drained')
  const older = await channelOf(node)
  await renewed(node)
  const promotedMs = Date.now()
  const newer = await channelOf(node)
  assert.equal(older.ended(), false)
  assert.equal((await endOf(older, 8_000))?.code, 'REPLACED')
  assert.ok(Date.now() - promotedMs >= 2_000)
  assert.equal(newer.ended(), false)
  await set('domain', 'set', 'drainMs=60s')
  newer.destroy()
})

test('a channel ends when its certificate expires, although its node says nothing wrong', async () => {
  await set('profile', 'create', 'seconds', '--from', 'gpu-cloud', 'certificate.lifetimeMs=3s')
  const node = await activeNode(plane(), 'brief', 'seconds')
  const channel = await channelOf(node)
  assert.equal((await endOf(channel, 8_000))?.code, 'CLIENT_CERT_EXPIRED')
  assert.ok(new Date().toISOString() >= (await record('brief')).cert_not_after)
})

for (const withdrawal of ['revoke', 'quarantine']) {
  test(`after a ${withdrawal} no frame is handled, though the node ignores the close and goes on talking`, async () => {
    const id = `talker-${withdrawal}`
    const node = await activeNode(plane(), id)
    const channel = await channelOf(node, { closes: 'ignored' })
    // Every second report raises a condition, every other clears it: each that is handled leaves an entry.
    let reports = 0
    const talk = setInterval(() => {
      for (let i = 0; i < 20 && channel.unsentBytes() < 100_000; i++) {
        const persisted = reports++ % 2 === 1
        channel.send('applied', { config_revision: reports, trust_revision: 0, persisted, detail: null })
      }
    }, 1)
    try {
      await eventually('it to be received', async () => (await journalEntries(plane(), { node: id })).length > 20)
      const { status, body } = await plane().api('POST', `/v1/nodes/${id}/${withdrawal}`, { reason: 'compromised' })
      const passedMs = fairStopwatch()
      assert.deepEqual([status, body.channels_cut], [200, 1])
      const revisionThen = (await record(id)).config_revision
      await eventually('the socket to be destroyed', () => channel.ended(), { withinMs: 1_000, everyMs: 5 })
      assert.ok(passedMs() < 1_000)
      assert.equal((await record(id)).config_revision, revisionThen)
      assert.deepEqual(await sessionsOf(id), [])
    } finally {
      clearInterval(talk)
    }
    const types = (await journalEntries(plane(), { node: id })).map(({ type }) => type)
    const decided = types.findIndex((type) => /revoked$|quarantined$/.test(type))
    const later = types.slice(decided + 1).filter((type) => type !== 'refused')
    assert.deepEqual(
      later.filter((type) => /condition/.test(type)),
      [],
    )
    const again = await node.openChannel()
    assert.ok('status' in again && again.status === 403, JSON.stringify(again))
    channel.destroy()
  })
}

test('a node that keeps changing its own record does not put off its revocation', async () => {
  const rounds = process.env['MUSTER_LONG'] === '1' ? 30 : 2
  for (let round = 0; round < rounds; round++) {
    const id = `busy-${round}`
    const node = await activeNode(plane(), id)
    let confirmed = 0
    let stopped = false
    const insist = async (persisted: boolean): Promise<void> => {
      while (!stopped) {
        const { status } = await node.confirm({ persisted })
        if (status === 200) confirmed++
        else stopped ||= status === 403
      }
    }
    const crowd = Array.from({ length: 16 }, (_, at) => insist(at % 2 === 0))
    await eventually('it to be busy', () => confirmed > 40)
    const { status, body } = await plane().api('POST', `/v1/nodes/${id}/revoke`, { reason: 'compromised' })
    stopped = true
    assert.equal(status, 200, JSON.stringify(body))
    await Promise.all(crowd)
  }
})

test('a revocation that meets openings leaves none of them open', async () => {
  const rounds = process.env['MUSTER_LONG'] === '1' ? 200 : 15
  for (let round = 0; round < rounds; round++) {
    const id = `race-${round}`
    const node = await activeNode(plane(), id)
    const opening = Array.from({ length: 3 }, () => node.openChannel().catch(() => null))
    const { status } = await plane().api('POST', `/v1/nodes/${id}/revoke`, { reason: 'compromised' })
    assert.equal(status, 200)
    assert.deepEqual(await sessionsOf(id), [])
    for (const channel of await Promise.all(opening)) {
      if (channel !== null && 'frames' in channel) await endOf(channel, 1_000)
    }
    assert.deepEqual(await sessionsOf(id), [])
  }
})

test('a lapse that races an opening channel: a node with a channel is active, whichever was first', async () => {
  const rounds = process.env['MUSTER_LONG'] === '1' ? 100 : 2
  await set('domain', 'set', 'livenessGraceMs=1s')
  const nodes = await Promise.all(Array.from({ length: 8 }, (_, at) => activeNode(plane(), `lapse-${at}`)))
  for (let round = 0; round < rounds; round++) {
    const lapsed = eventually('one of them to lapse', async () =>
      (await Promise.all(nodes.map(async (node) => (await record(node.id())).membership))).includes('inactive'),
    )
    await lapsed
    const channels = await Promise.all(nodes.map((node) => channelOf(node)))
    for (const node of nodes) assert.equal((await record(node.id())).membership, 'active', node.id())
    for (const channel of channels) channel.destroy()
  }
  await set('domain', 'set', 'livenessGraceMs=5m')
})

test('a plane that stops says so, and does not wait for nodes that ignore it or come back at once', async (t) => {
  const own = await startPlane(t)
  const channel = await channelOf(await activeNode(own, 'stubborn'), { closes: 'ignored' })
  const hasty = await activeNode(own, 'hasty')
  let stopped = false
  const comeBack = async (): Promise<void> => {
    while (!stopped) await hasty.openChannel({ closes: 'ignored' }).catch(() => null)
  }
  const insisting = [comeBack(), comeBack()]
  const passedMs = fairStopwatch()
  assert.deepEqual(await own.stop(), { code: 0, signal: null })
  stopped = true
  await Promise.all(insisting)
  assert.ok(passedMs() < 8_000)
  assert.equal((await endOf(channel))?.code, 'PLANE_STOPPING')
  channel.destroy()
})
