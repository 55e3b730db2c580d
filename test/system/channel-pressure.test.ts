// Nodes that read slowly, talk too much or say nothing: what they cost, and that the others do not notice.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pingEveryMs, pongWithinMs } from '#wire/channel/channel.ts'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { openFakeTime } from '../process/fake-time.ts'
import type { Json } from '../process/operator-call.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { passTime } from '../process/pass-time.ts'
import { residentBytes } from '../process/resident-memory.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { channelOf, endOf } from './channel-setup.ts'

const plane = sharedPlane({ args: ['--log-level', 'warn'] })
const mib = 2 ** 20

const record = async (of: Plane, id: string): Promise<Json> => (await of.api('GET', `/v1/nodes/${id}`)).body

/** Says as much as the sockets take, until told to stop or cut off. */
const flood = (channel: RawChannel, say: () => boolean): (() => Promise<void>) => {
  let stopped = false
  const talking = (async () => {
    while (!stopped && !channel.ended()) {
      for (let i = 0; i < 200 && channel.unsentBytes() < mib; i++) say()
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  return async () => {
    stopped = true
    await talking
  }
}

/** By how much the plane has grown until it cut the node off. */
const grownByDeaf = async (id: string): Promise<number> => {
  const channel = await channelOf(await activeNode(plane(), id))
  channel.stopReading()
  const beforeBytes = residentBytes(plane().pid)
  let mostBytes = 0
  const stop = flood(channel, () => channel.send('x'.repeat(64), {}))
  await eventually(
    'the plane to cut it off',
    async () => {
      mostBytes = Math.max(mostBytes, residentBytes(plane().pid))
      return !(await record(plane(), id)).channel_open
    },
    { withinMs: 60_000, everyMs: 100 },
  )
  await stop()
  channel.destroy()
  return mostBytes - beforeBytes
}

test('a node that asks for answers and reads none is cut off, and costs no memory', async () => {
  // The first flood also makes the runtime take the memory that it works in.
  await grownByDeaf('deaf-first')
  const grown = await grownByDeaf('deaf')
  assert.ok(grown < 64 * mib, `grew by ${Math.round(grown / mib)} MiB`)
})

test('while some nodes flood the plane others are answered quickly, and the floods are answered in order', async () => {
  const [quiet, ...loud] = await Promise.all(
    ['quiet', 'loud-1', 'loud-2'].map(async (id) => channelOf(await activeNode(plane(), id))),
  )
  assert.ok(quiet)
  const beforeBytes = residentBytes(plane().pid)
  const stops = loud.map((channel, at) => flood(channel, () => (at === 0 ? channel.send('?', {}) : channel.sendPing())))
  await eventually('the floods to be under way', () => (loud[0]?.frames.length ?? 0) > 1_000)
  const waitedMs: number[] = []
  for (let round = 1; round <= 20; round++) {
    const fairMs = fairStopwatch()
    quiet.send(`round-${round}`, {})
    await eventually('its answer', () => quiet.frames.some(({ body }) => body.type === `round-${round}`), {
      everyMs: 1,
    })
    waitedMs.push(fairMs())
  }
  const grownBytes = residentBytes(plane().pid) - beforeBytes
  for (const stop of stops) await stop()
  const median = waitedMs.toSorted((a, b) => a - b)[10] ?? Infinity
  assert.ok(median < 500, `the quiet node waited ${median.toFixed(0)} ms`)
  assert.ok(grownBytes < 96 * mib, `grew by ${Math.round(grownBytes / mib)} MiB`)
  for (const channel of loud) assert.equal(channel.ended(), false)
  const sequences = (loud[0]?.frames ?? []).map(({ seq }) => seq)
  assert.deepEqual(
    sequences,
    [...sequences.keys()].map((at) => at + 1),
  )
  for (const channel of [quiet, ...loud]) channel.destroy()
})

test('pings go both ways: an idle node is asked, seen again when it answers, and cut off when it does not', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  const time = openFakeTime(tempFolder(t), library)
  // Both clocks of this plane move, so that a minute of silence is over in a moment.
  const env = { ...time.env, FAKETIME_DONT_FAKE_MONOTONIC: undefined }
  const own = await startPlane(t, { env, args: ['--log-level', 'warn'] })
  const [polite, mute] = [await activeNode(own, 'polite'), await activeNode(own, 'mute')]
  const [answers, ignores] = [await channelOf(polite), await channelOf(mute, { pings: 'ignored' })]
  answers.sendPing('are you there?')
  await eventually('the answer of the plane', () => answers.pongsReceived() === 1)
  const seenBefore = Date.parse((await record(own, 'polite')).last_seen)

  await passTime(time, own, pingEveryMs + 1_000)
  await eventually('both to be asked', () => answers.pingsReceived() === 1 && ignores.pingsReceived() === 1)
  await eventually(
    'last_seen to advance',
    async () => Date.parse((await record(own, 'polite')).last_seen) >= seenBefore + pingEveryMs,
  )
  await passTime(time, own, pongWithinMs - pingEveryMs)
  assert.equal(await endOf(ignores), null)
  assert.equal(answers.ended(), false)
  // On PostgreSQL the lease of this plane is over as well, so it says nothing of its nodes until it has a new one.
  await eventually('the plane to know whose channel is open', async () => {
    const [spoke, kept] = [await record(own, 'polite'), await record(own, 'mute')]
    return spoke.channel_open === true && kept.channel_open === false
  })
  assert.ok(Date.parse((await record(own, 'mute')).last_seen) < seenBefore + pingEveryMs)
})
