import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../test/fakes/manual-timers.ts'
import { coalesced } from './coalesced-log.ts'

const minute = 60_000

const setUp = (level = 'info') => {
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const timers = manualTimers(clock)
  const written: Record<string, unknown>[] = []
  const dropped: string[] = []
  let quiet = false
  const under = pino(
    { level, base: null, timestamp: false },
    { write: (line: string) => void written.push(JSON.parse(line) as Record<string, unknown>) },
  )
  const { log, flush } = coalesced(
    { log: under, clock, timers },
    { quiet: () => quiet, dropped: (reason) => void dropped.push(reason) },
    ['output'],
  )
  return { clock, timers, written, dropped, log, flush, press: (on: boolean) => void (quiet = on) }
}

test('the same warning within a minute is written once, and then once more with its number', () => {
  const { timers, written, log, dropped } = setUp()
  for (let time = 0; time < 30; time++) {
    log.warn({ code: 'ECONNREFUSED', nextTry: time }, 'the plane cannot be reached')
    timers.advance(1000)
  }
  assert.equal(written.length, 1)
  timers.advance(minute)
  assert.equal(written.length, 2)
  assert.deepEqual(written[1], {
    level: 40,
    code: 'ECONNREFUSED',
    nextTry: 29,
    repeated: 29,
    msg: 'the plane cannot be reached',
  })
  assert.deepEqual(dropped, [])
  timers.advance(5 * minute)
  assert.equal(written.length, 2)
  assert.equal(timers.waiting(), 0)
})

test('another code, another level and other facts are other lines', () => {
  const { written, log } = setUp()
  log.warn({ code: 'A' }, 'trouble')
  log.warn({ code: 'B' }, 'trouble')
  log.error({ code: 'A' }, 'trouble')
  log.info({ serial: 'ab' }, 'certificate renewed')
  log.info({ serial: 'cd' }, 'certificate renewed')
  log.info({ serial: 'cd' }, 'certificate renewed')
  log.warn({ output: 'web', next: '12:00:01' }, 'failed')
  log.warn({ output: 'db', next: '12:00:01' }, 'failed')
  log.warn({ output: 'db', next: '12:00:14' }, 'failed')
  assert.deepEqual(
    written.slice(5).map(({ output }) => output ?? 'renewed'),
    ['renewed', 'web', 'db'],
  )
})

test('what was counted is written before the next line that is different', () => {
  const { written, log, timers } = setUp()
  for (let time = 0; time < 3; time++) log.warn({ code: 'ECONNREFUSED' }, 'the plane cannot be reached')
  log.info('channel open')
  assert.deepEqual(
    written.map(({ msg, repeated }) => [msg, repeated]),
    [
      ['the plane cannot be reached', undefined],
      ['the plane cannot be reached', 2],
      ['channel open', undefined],
    ],
  )
  timers.advance(5 * minute)
  assert.equal(written.length, 3)
})

test('what comes back after something else is said again, unless it does so faster than a person reads', () => {
  const { written, log, timers } = setUp()
  const flap = (waitMs: number): void => {
    log.info({ url: 'wss://plane' }, 'channel open')
    timers.advance(waitMs)
    log.warn({ code: 'channel_closed' }, 'the channel ended')
    timers.advance(waitMs)
  }
  flap(5_000)
  flap(5_000)
  assert.deepEqual(
    written.map(({ msg }) => msg),
    ['channel open', 'the channel ended', 'channel open', 'the channel ended'],
  )
  for (let time = 0; time < 100; time++) flap(10)
  assert.ok(written.length <= 12, String(written.length))
})

test('callers cannot make one warning into many by what they choose', () => {
  const { written, log } = setUp()
  for (const from of ['fd00::a', 'fd00::b', 'fd00::c']) log.warn({ code: 'refused', from }, 'closed')
  assert.equal(written.length, 1)
})

test('beyond so many lines a minute only errors are written, and how many were not is said', () => {
  const { timers, written, log, dropped } = setUp()
  for (let line = 0; line < 1000; line++) log.warn(`warning ${line}`)
  assert.equal(written.length, 240)
  for (let line = 0; line < 100; line++) log.error(`error ${line}`)
  log.fatal('fatal')
  assert.equal(written.length, 341)
  assert.equal(dropped.filter((reason) => reason === 'too_many').length, 760)
  timers.advance(2 * minute)
  assert.deepEqual(
    written.slice(341).map(({ left_out }) => left_out),
    [760],
  )
  log.info('on it goes')
  assert.equal(written.at(-1)?.['msg'], 'on it goes')
})

test('under pressure what is less than a warning is dropped', () => {
  const { written, log, press, dropped } = setUp()
  press(true)
  log.info('chatter')
  log.warn('trouble')
  press(false)
  log.info('chatter')
  assert.deepEqual(
    written.map(({ msg }) => msg),
    ['trouble', 'chatter'],
  )
  assert.deepEqual(dropped, ['disk_pressure'])
})

test('what was counted is said before the end', () => {
  const { written, log, flush, timers } = setUp()
  log.error({ err: new Error('x') }, 'broken')
  log.error('broken')
  flush()
  assert.equal(written.length, 2)
  assert.equal(written[1]?.['repeated'], 1)
  flush()
  assert.equal(written.length, 2)
  assert.equal(timers.waiting(), 0)
})

test('at level debug every line is written', () => {
  const { written, log } = setUp('trace')
  for (let line = 0; line < 500; line++) log.debug({ line }, 'frame')
  log.trace('plain')
  assert.equal(written.length, 501)
})

test('children share the count', () => {
  const { written, log } = setUp()
  log.child({ part: 'channel' }).warn('lost')
  log.child({ part: 'channel' }).warn('lost')
  assert.equal(written.length, 1)
  assert.equal(written[0]?.['part'], 'channel')
})
