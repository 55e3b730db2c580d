import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withEvent, RecordedEvent, type NewEvent } from './events.ts'
import { matchesSchema } from '#platform/json-schema.ts'

const event = (change: Partial<NewEvent>): NewEvent => ({
  place: 'renewal',
  event: 'failed',
  class: 'endpoint_unreachable',
  code: 'ECONNREFUSED',
  text: 'Nobody answers.',
  next: 'wait',
  correlation: null,
  next_try: null,
  evidence: {},
  ...change,
})
const at = (second: number): string => `2026-11-15T12:00:${String(second).padStart(2, '0')}.000Z`
const tried = event({ event: 'tried', class: null, code: '', text: 'renew the certificate' })

test('a failure that repeats is one event with its first and last time', () => {
  let events: readonly RecordedEvent[] = []
  for (let second = 0; second < 10; second += 2) {
    events = withEvent(events, tried, at(second))
    events = withEvent(events, event({ text: `Nobody answers: try ${second}.` }), at(second + 1))
  }
  assert.deepEqual(
    events.map(({ event: what, times, first, at: last, text }) => [what, times, first, last, text]),
    [
      ['tried', 5, at(0), at(8), 'renew the certificate'],
      ['failed', 5, at(1), at(9), 'Nobody answers: try 8.'],
    ],
  )
})

test('once a place has gone well, the same failure is a new one', () => {
  let events = withEvent([], event({}), at(1))
  events = withEvent(events, event({ event: 'succeeded', class: null, text: 'renewed' }), at(2))
  events = withEvent(events, event({}), at(3))
  assert.deepEqual(
    events.map(({ event: what, times, first }) => [what, times, first]),
    [
      ['failed', 1, at(1)],
      ['succeeded', 1, at(2)],
      ['failed', 1, at(3)],
    ],
  )
})

test('a place that goes well again and again is one event, so that it does not push failures out', () => {
  let events = withEvent([], event({ place: 'channel' }), at(0))
  for (let second = 1; second < 50; second++)
    events = withEvent(
      events,
      event({ event: 'succeeded', code: '', text: 'rehearsed', place: 'rehearsal' }),
      at(second),
    )
  assert.equal(events.length, 2)
  assert.equal(events[1]?.times, 49)
})

test('whatever is noted, the record is bounded and can be read again', () => {
  const anything = fc.record({
    place: fc.constantFrom('renewal', 'channel', 'agent'),
    event: fc.constantFrom('failed' as const, 'tried' as const, 'succeeded' as const, 'changed' as const),
    class: fc.constantFrom(null, 'disk_full' as const),
    code: fc.string({ maxLength: 200 }),
    text: fc.string({ maxLength: 2000 }),
    next: fc.string({ maxLength: 2000 }),
    correlation: fc.option(fc.string({ maxLength: 200 }), { nil: null }),
    next_try: fc.constant(null),
    evidence: fc.dictionary(fc.string(), fc.oneof(fc.string({ maxLength: 500 }), fc.double(), fc.constant(null))),
  })
  fc.assert(
    fc.property(fc.array(anything, { maxLength: 100 }), (all) => {
      const events = all.reduce<readonly RecordedEvent[]>((so, one) => withEvent(so, one, at(1)), [])
      assert.ok(events.length <= 64)
      assert.ok(events.every((one) => matchesSchema(RecordedEvent, JSON.parse(JSON.stringify(one)))))
    }),
    { numRuns: 50 },
  )
})

test('a secret in a text does not reach the record', () => {
  const secret = `enroll_${'a'.repeat(43)}`
  assert.ok(!JSON.stringify(withEvent([], event({ text: `token ${secret}` }), at(1))).includes(secret))
})
