import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSourcePace, paceTickMs, type SourcePace } from './source-pace.ts'

const ticksPerSecond = 1000 / paceTickMs

const admittedOf = (pace: SourcePace, source: string, tries: number): number =>
  Array.from({ length: tries }, () => pace.admits(source)).filter(Boolean).length

/** How many connections of that source begin in a second in which it tries without end. */
const admittedInSecond = (pace: SourcePace, source: string): number => {
  let admitted = 0
  for (let tick = 0; tick < ticksPerSecond; tick++) {
    admitted += admittedOf(pace, source, 100)
    pace.tick()
  }
  return admitted
}

test('a source is slowed after more than thirty fruitless connections, and others are not', () => {
  const pace = openSourcePace()
  for (let each = 0; each < 30; each++) pace.offended('a')
  assert.equal(admittedOf(pace, 'a', 100), 100)
  pace.offended('a')
  assert.equal(admittedOf(pace, 'b', 100), 100)
  assert.equal(admittedInSecond(pace, 'a'), 20)
  assert.equal(admittedOf(pace, 'a', 100), 100, 'three offences are forgiven a second')
})

test('what a slowed source may have in a second is spread over it', () => {
  const pace = openSourcePace()
  for (let each = 0; each < 60; each++) pace.offended('a')
  for (let tick = 0; tick < 10; tick++) {
    assert.equal(admittedOf(pace, 'a', 100), 1)
    pace.tick()
  }
})

test('a connection that cost as much as ten is followed by as long a pause, and by a second at most', () => {
  const pace = openSourcePace()
  const ticksUntilAdmitted = (): number => {
    for (let ticks = 0; ticks < 1000; ticks++) {
      if (pace.admits('a')) return ticks
      pace.tick()
    }
    return Number.NaN
  }
  for (let each = 0; each < 60; each++) pace.offended('a')
  assert.equal(ticksUntilAdmitted(), 0)
  pace.offended('a', 10)
  assert.equal(ticksUntilAdmitted(), 10)
  for (let each = 0; each < 10; each++) pace.offended('a', 10)
  assert.equal(ticksUntilAdmitted(), ticksPerSecond)
})

test('a source that goes on is never shut out, and is itself again a quarter of a minute after it stopped', () => {
  const pace = openSourcePace()
  for (let second = 0; second < 100; second++) {
    for (let each = 0; each < 50; each++) pace.offended('a')
    assert.equal(admittedInSecond(pace, 'a'), 20)
  }
  for (let tick = 0; tick < 15 * ticksPerSecond; tick++) pace.tick()
  assert.equal(admittedOf(pace, 'a', 100), 100)
})

test('a fleet behind one address is not slowed by the part of its connections that break', () => {
  const pace = openSourcePace()
  for (let each = 0; each < 10_000; each++) {
    assert.equal(pace.admits('gateway'), true)
    if (each % 3 === 0) pace.offended('gateway')
    else pace.credited('gateway')
  }
})
