import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ThreadSocket } from './thread-socket.ts'
import { costOf, unreadLimits } from './tls-thread-messages.ts'
import { openUnreadBudget } from './unread-budget.ts'

/** A peer that sends `chunks` as fast as the thread in between reads them. */
const peerThatSends = (chunk: string, chunks: number) => {
  const budget = openUnreadBudget(unreadLimits(1))
  let outstanding = 0
  let sent = 0
  let isRead = true
  const changed = (to: number): void => {
    isRead = budget.changed(outstanding, to)
    outstanding = to
  }
  const socket = new ThreadSocket(1, { address: '127.0.0.1', port: 1 }, (message) => {
    if (message[0] === 'read') changed(outstanding - message[2])
  })
  return {
    socket,
    sent: () => sent,
    /** Until the thread reads no further; each chunk comes in a turn of its own. */
    async send(): Promise<void> {
      while (isRead && sent < chunks) {
        sent++
        changed(outstanding + costOf(chunk))
        socket.takeBytes(chunk)
        await nextTurn()
      }
    },
  }
}

const manyMore = 1000

for (const length of [1, 200, 16 * 1024]) {
  test(`of a connection that nobody reads little waits, in chunks of ${length}`, async () => {
    const chunk = 'x'.repeat(length)
    const peer = peerThatSends(chunk, manyMore)
    await peer.send()
    assert.equal(peer.sent(), Math.floor((64 * 1024) / costOf(chunk)) + 1)
  })

  test(`a reader that pauses over and over gets everything, in chunks of ${length}`, async () => {
    const peer = peerThatSends('x'.repeat(length), manyMore)
    const { socket } = peer
    let got = 0
    let untilPause = 0
    socket.on('data', (bytes: Buffer) => {
      got += bytes.length
      if (++untilPause % 300 === 0) socket.pause()
    })
    // More rounds than it can need: a connection that is stuck ends the test.
    for (let round = 0; round < 100 && got < manyMore * length; round++) {
      await peer.send()
      socket.resume()
      await nextTurn()
    }
    assert.equal(got, manyMore * length)
  })

  test(`a reader that begins when the thread has stopped reading gets everything, in chunks of ${length}`, async () => {
    const peer = peerThatSends('x'.repeat(length), manyMore)
    let got = 0
    await peer.send()
    peer.socket.on('readable', () => {
      for (let bytes = peer.socket.read(); bytes !== null; bytes = peer.socket.read()) got += (bytes as Buffer).length
    })
    for (let round = 0; round < 100 && got < manyMore * length; round++) {
      await nextTurn()
      await peer.send()
    }
    assert.equal(got, manyMore * length)
  })
}
