// What the tests of the channel share: an open one, and how it ended.

import assert from 'node:assert/strict'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import type { ChannelBehaviour, RawChannel } from '../process/raw-channel.ts'
import type { RawNode } from '../process/raw-node.ts'

/** Both sides have said hello. */
export const channelOf = async (node: RawNode, behaviour: ChannelBehaviour = {}): Promise<RawChannel> => {
  const channel = await node.openChannel(behaviour)
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  return channel
}

/** What the plane answered instead of opening one. */
export const refusedChannel = async (node: RawNode, behaviour: ChannelBehaviour): Promise<[number, Json]> => {
  const answer = await node.openChannel(behaviour)
  assert.ok('status' in answer, 'a channel was opened')
  return [answer.status, answer.body.code]
}

/** What was said before the end; null when nothing was. */
export const endOf = async (channel: RawChannel, withinMs = 5_000): Promise<{ code: string; detail: Json } | null> => {
  await eventually('the channel to end', () => channel.ended(), { withinMs })
  return channel.frames.find(({ type }) => type === 'closing')?.body ?? null
}

/** The first frame after the hello of a raw channel has sequence 2. */
export const frameText = (seq: number, type: string, body: object, stream = 0): string =>
  JSON.stringify({ stream, seq, ack: 0, type, body })
