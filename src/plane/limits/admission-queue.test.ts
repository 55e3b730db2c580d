import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openAdmissionQueue, type AdmissionQueue } from './admission-queue.ts'

const setUp = (capacity: number) => {
  const clock = manualClock(0)
  return { clock, queue: openAdmissionQueue(clock, capacity) }
}

const admitted = (queue: AdmissionQueue): (() => void) => {
  const entered = queue.enter()
  assert.ok(!isRefusal(entered))
  return entered
}

const waitOf = (queue: AdmissionQueue): number => {
  const refused = queue.enter()
  assert.ok(isRefusal(refused) && refused.code === 'BUSY' && refused.retryAfterMs !== null)
  return refused.retryAfterMs
}

/** A crowd that is let in as places become free, and otherwise turned away, for so long. */
const crowd = (clock: ReturnType<typeof manualClock>, queue: AdmissionQueue, seconds: number, perSecond: number) => {
  const inside: (() => void)[] = []
  const fill = (): void => {
    for (let entered = queue.enter(); !isRefusal(entered); entered = queue.enter()) inside.push(entered)
  }
  fill()
  for (let tick = 0; tick < seconds * perSecond; tick++) {
    clock.advance(1000 / perSecond)
    inside.shift()?.()
    fill()
  }
  return inside
}

test('so many are inside at once, and a place that is left is free again, once', () => {
  const { queue } = setUp(2)
  const [first] = [admitted(queue), admitted(queue)]
  waitOf(queue)
  first()
  first()
  assert.equal(queue.waiting(), 1)
  admitted(queue)
  waitOf(queue)
})

test('each caller that is asked to come back gets its own retry time, none sooner than a second', () => {
  const { queue } = setUp(1)
  admitted(queue)
  const waits = Array.from({ length: 200 }, () => waitOf(queue))
  assert.ok(waits.every((ms, at) => ms > 1000 && (at === 0 || ms > (waits[at - 1] ?? 0))))
  assert.ok((waits.at(-1) ?? 0) <= 2000, 'two hundred a second is the first guess')
})

test('retry times are as far apart as the work takes', () => {
  const { clock, queue } = setUp(10)
  crowd(clock, queue, 5, 20)
  const [a, b, c] = [waitOf(queue), waitOf(queue), waitOf(queue)]
  assert.deepEqual([b - a, c - b], [50, 50])
})

test('a quiet night does not make the plane believe that it is slow', () => {
  const { clock, queue } = setUp(10)
  for (const leave of crowd(clock, queue, 5, 100)) leave()
  for (let hour = 0; hour < 8; hour++) {
    clock.advance(3_600_000)
    admitted(queue)()
  }
  for (let i = 0; i < 10; i++) admitted(queue)
  const waits = Array.from({ length: 100 }, () => waitOf(queue))
  assert.ok((waits.at(-1) ?? Infinity) <= 2100, `${waits.at(-1)} ms`)
})

test('no caller is asked to wait longer than five minutes, however many there are', () => {
  const { clock, queue } = setUp(1)
  crowd(clock, queue, 5, 1)
  const waits = Array.from({ length: 2000 }, () => waitOf(queue))
  assert.ok(Math.max(...waits) <= 300_000)
  assert.ok(Math.min(...waits) >= 1000)
})
