import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hour, minute, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import { needsSecond, recentRuns, tallied, tooManyRuns, type RunTally, type TallyFacts } from './run-tally.ts'

const of = 'operator:key-1'
const limit = { approveRunAbove: 3 }
const factsAt = (tally: RunTally | null, nowMs: number): TallyFacts => ({
  of,
  row: tally === null ? null : row(tally, 1),
  nowMs,
})

const after = (tally: RunTally | null, nowMs: number, runs = 1): RunTally => {
  const [write] = tallied(factsAt(tally, nowMs), runs).writes ?? []
  assert(write?.put === 'run-tally')
  return write.value
}

test('runs of an hour count together, and a run that is an hour and five minutes old does not', () => {
  const three = after(after(null, noonMs, 2), noonMs + 20 * minute)
  assert.equal(recentRuns(factsAt(three, noonMs + 59 * minute)), 3)
  assert.equal(tooManyRuns(factsAt(three, noonMs + 59 * minute), limit, 'run')?.code, 'SECOND_OPERATOR_REQUIRED')
  assert.equal(recentRuns(factsAt(three, noonMs + hour + 5 * minute)), 1)
  assert.equal(tooManyRuns(factsAt(three, noonMs + hour + 5 * minute), limit, 'run'), null)
})

test('other types do not count, and nothing counts without a limit', () => {
  const three = after(null, noonMs, 3)
  assert.equal(needsSecond(factsAt(three, noonMs), limit, 'service', 1000), false)
  assert.equal(needsSecond(factsAt(three, noonMs), { approveRunAbove: null }, 'run', 1000), false)
  assert.equal(needsSecond(factsAt(null, noonMs), { approveRunAbove: 0 }, 'run', 1), true)
})

test('whatever the times are, no hour has more runs than the limit, and the row stays short', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(10 * minute), { maxLength: 400 }), (pauses) => {
      let tally: RunTally | null = null
      let nowMs = noonMs
      const queued: number[] = []
      for (const pause of pauses) {
        nowMs += pause
        if (tooManyRuns(factsAt(tally, nowMs), limit, 'run') !== null) continue
        tally = after(tally, nowMs)
        queued.push(nowMs)
        assert.ok(tally.slots.length <= 14)
      }
      for (const [at, startMs] of queued.entries())
        assert.ok(queued.slice(at).filter((atMs) => atMs < startMs + hour).length <= 3)
    }),
  )
})
