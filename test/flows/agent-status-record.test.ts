import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDiagnostics } from '#agent/diagnostics/open-diagnostics.ts'
import { readRecord } from '#agent/diagnostics/record-files.ts'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { trouble } from '#agent/core/trouble.ts'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('the record explains every state that the status shows', (t) => {
  const clock = manualClock(Date.UTC(2026, 10, 15))
  const timers = manualTimers(clock)
  const stateFolder = tempFolder(t)
  const diagnostics = openDiagnostics({ clock, timers, log: silentLog }, { stateFolder, keyStorage: 'file' })
  const { record } = diagnostics
  // The record was written a moment later than the status, so that its next turn comes later too.
  timers.advance(600)
  record.attempt('channel', 'Connect.')
  timers.advance(500)
  record.trouble('channel', trouble('channel_closed', 'The channel ended.', 'Wait'), null)
  record.channel(true, 'wss://plane.example.test')
  for (let waitedMs = 0; readStatusFile(stateFolder)?.channel.open !== true; waitedMs += 50) {
    assert.ok(waitedMs < 1_500, 'never written')
    timers.advance(50)
  }
  assert.deepEqual(
    readRecord(stateFolder).map(({ code }) => code),
    ['started', '', 'channel_closed', 'channel_open'],
  )
})
