import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSourcePace } from './source-pace.ts'

const admittedOf = (pace: ReturnType<typeof openSourcePace>, source: string, tries: number): number =>
  Array.from({ length: tries }, () => pace.admits(source)).filter(Boolean).length

test('a source is slowed after more than thirty fruitless connections, and others are not', () => {
  const pace = openSourcePace()
  for (let each = 0; each < 30; each++) pace.offended('a')
  assert.equal(admittedOf(pace, 'a', 100), 100)
  pace.offended('a')
  assert.equal(admittedOf(pace, 'a', 100), 20)
  assert.equal(admittedOf(pace, 'b', 100), 100)
  pace.tick()
  assert.equal(admittedOf(pace, 'a', 100), 100, 'three offences are forgiven a second')
})

test('a source that goes on is never shut out, and is itself again a quarter of a minute after it stopped', () => {
  const pace = openSourcePace()
  for (let second = 0; second < 100; second++) {
    for (let each = 0; each < 50; each++) pace.offended('a')
    pace.tick()
    assert.equal(admittedOf(pace, 'a', 100), 20)
  }
  for (let second = 0; second < 15; second++) pace.tick()
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
