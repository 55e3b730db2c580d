import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isoTime } from '#platform/clock.ts'
import { type ReportedLine, unresolvedFailure } from './unresolved-failure.ts'

const startMs = Date.UTC(2026, 10, 15)
const line = (place: string, event: ReportedLine['event'], code = ''): ReportedLine => ({
  ...{ at: isoTime(startMs), place, event, code },
})
const channelEnded = line('channel', 'failed', 'channel_closed')
const diskFull = line('storage', 'failed', 'disk_full')
const renewalFailed = line('renewal', 'failed', 'cert_expired')
const lastOf = (story: readonly ReportedLine[], channelSinceMs: number | null = null) =>
  unresolvedFailure(story, channelSinceMs)

test('the last failure counts until its place goes well', () => {
  assert.equal(lastOf([]), null)
  assert.equal(lastOf([diskFull, channelEnded]), channelEnded)
  assert.equal(lastOf([diskFull, channelEnded, line('channel', 'succeeded')]), diskFull)
  assert.equal(lastOf([line('channel', 'succeeded'), channelEnded]), channelEnded)
})

test('a channel that is opened ends the failure of the one before, and no other failure', () => {
  const opened = line('channel', 'changed', 'channel_open')
  assert.equal(lastOf([diskFull, channelEnded, opened]), diskFull)
  assert.equal(lastOf([channelEnded, line('channel', 'changed', 'channel_closed')]), channelEnded)
  assert.equal(lastOf([opened, channelEnded]), channelEnded)
})

test('a channel that was opened after a failure of the channel ends it before a report says so', () => {
  assert.equal(lastOf([channelEnded], startMs + 1), null)
  assert.equal(lastOf([diskFull], startMs + 1), diskFull)
  // A second channel, with a newer certificate, may fail while the first one goes on.
  assert.equal(lastOf([channelEnded], startMs - 1), channelEnded)
})

test('with a new identity the failures of the one before are over, and not those of the machine', () => {
  for (const place of ['enrollment', 'recovery']) {
    const entered = line(place, 'succeeded')
    assert.equal(lastOf([renewalFailed, channelEnded, entered]), null)
    assert.equal(lastOf([diskFull, renewalFailed, entered]), diskFull)
    assert.equal(lastOf([entered, renewalFailed]), renewalFailed)
  }
})
