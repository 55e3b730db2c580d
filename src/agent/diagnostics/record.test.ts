import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isoTime } from '#platform/clock.ts'
import { classified, trouble } from '#agent/core/trouble.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openRecord } from './record.ts'

const startMs = Date.UTC(2026, 10, 15)
const away = classified(trouble('ECONNREFUSED', 'Nobody answers.', 'wait'), 'endpoint_unreachable')
const full = classified(trouble('disk_full', 'Full.', 'make room'), 'disk_full')

const setUp = (pressure = false) => {
  const clock = manualClock(startMs)
  const disk = { pressed: pressure }
  const record = openRecord(clock, { pressure: () => disk.pressed })
  const changes: string[] = []
  record.watch((what) => void changes.push(what))
  const troubles = () =>
    record.now().status.troubles.map(({ place, code, attempts, since }) => [place, code, attempts, since])
  const events = () => record.now().events.map(({ place, event, code, times }) => [place, event, code, times])
  return { clock, disk, record, changes, troubles, events }
}

test('a trouble is how it stands and what happened: attempts are counted while its code stays', () => {
  const { clock, record, troubles, events } = setUp()
  record.trouble('renewal', away, startMs + 60_000, 'story')
  clock.advance(5_000)
  record.trouble('renewal', away, null)
  record.trouble('channel', full, null)
  assert.deepEqual(troubles(), [
    ['renewal', 'ECONNREFUSED', 2, isoTime(startMs)],
    ['channel', 'disk_full', 1, isoTime(startMs + 5_000)],
  ])
  assert.deepEqual(events(), [
    ['renewal', 'failed', 'ECONNREFUSED', 2],
    ['channel', 'failed', 'disk_full', 1],
  ])
})

test('what went well ends the trouble of its place, and only that', () => {
  const { record, troubles, events } = setUp()
  record.trouble('renewal', away, null, 'story')
  record.trouble('channel', away, null)
  record.success('renewal', 'It was renewed.')
  assert.deepEqual(
    troubles().map(([place]) => place),
    ['channel'],
  )
  assert.equal(record.now().events.at(-1)?.correlation, 'story')
  record.clear('channel', 'unresolved')
  record.clear('storage')
  assert.deepEqual(troubles(), [])
  assert.deepEqual(events().at(-1), ['renewal', 'succeeded', '', 1])
})

test('a code that was a mistake is taken back at every place', () => {
  const { record, troubles } = setUp()
  record.trouble('renewal', away, null)
  record.trouble('channel', away, null)
  record.trouble('storage', full, null)
  record.withdraw('ECONNREFUSED', 'It was the clock.')
  assert.deepEqual(
    troubles().map(([place]) => place),
    ['storage'],
  )
})

test('figures change nothing that is written to disk, and everything else does', () => {
  const { record, changes } = setUp()
  record.count({ kind: 'exchanged' })
  record.count({ kind: 'recovered' })
  assert.deepEqual(changes, [])
  assert.equal(record.now().figures.lastExchangeMs, startMs)
  record.attempt('recovery', 'Recover.')
  record.phase('rejoining')
  record.phase('rejoining')
  record.trouble('recovery', away, null)
  assert.deepEqual(changes, ['events', 'status', 'events', 'status'])
})

test('a source that changes is an event, and one that stays is none', () => {
  const { record, events } = setUp()
  for (const source of ['plane', 'static', 'static', 'plane'] as const) record.source(source)
  assert.deepEqual(
    events().map(([place, , code]) => [place, code]),
    [
      ['agent', 'source'],
      ['agent', 'source'],
    ],
  )
  assert.equal(record.now().figures.source, 'plane')
})

test('on a disk with little room tries are counted and not noted, and since when is remembered', () => {
  const { clock, disk, record, events } = setUp(true)
  record.attempt('renewal', 'Renew.')
  record.trouble('renewal', away, null)
  assert.deepEqual(events(), [['renewal', 'failed', 'ECONNREFUSED', 1]])
  assert.deepEqual(record.now().figures.dropped, [{ source: 'record', reason: 'disk_pressure', count: 1 }])
  assert.equal(record.pressedSince(), isoTime(startMs))
  clock.advance(1_000)
  assert.equal(record.pressedSince(), isoTime(startMs))
  disk.pressed = false
  assert.equal(record.pressedSince(), null)
})

test('the last word says how the agent ended, with its channel closed', () => {
  const { record } = setUp()
  record.channel(true, 'wss://plane.example.test')
  record.end({ kind: 'refused', trouble: full })
  const { status, events } = record.now()
  assert.deepEqual([status.phase, status.outcome?.code, status.channel.open], ['stopped', 'disk_full', false])
  assert.deepEqual([events.at(-1)?.code, events.at(-1)?.next], ['refused', 'make room'])
})
