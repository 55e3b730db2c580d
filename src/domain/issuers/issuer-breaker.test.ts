import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterRequest, closedBreaker, passage, type Breaker } from './issuer-breaker.ts'

const fault = { kind: 'fault', why: 'no answer' } as const
const answered = { kind: 'answered' } as const

const opened = (nowMs = 0): Breaker => {
  let breaker = closedBreaker
  for (let faults = 0; faults < 5; faults++) breaker = afterRequest(breaker, fault, false, nowMs)
  return breaker
}

const probed = (breaker: Breaker, nowMs: number): Breaker => {
  const passed = passage(breaker, nowMs)
  assert.ok(passed.kind === 'pass' && passed.probe, `a probe goes through at ${nowMs}`)
  return passed.breaker
}

test('faults in a row open the breaker, and an answer in between does not let them add up', () => {
  let breaker = closedBreaker
  for (const outcome of [fault, fault, fault, fault, answered, fault, fault, fault, fault])
    breaker = afterRequest(breaker, outcome, false, 0)
  assert.equal(breaker.kind, 'closed')
  assert.equal(afterRequest(breaker, fault, false, 0).kind, 'open')
})

test('an open breaker lets one probe through at a time, at growing intervals up to a minute', () => {
  let breaker = opened()
  let nowMs = 0
  for (const intervalMs of [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
    const early = passage(breaker, nowMs + intervalMs - 1)
    assert.deepEqual(early, { kind: 'stopped', sinceMs: 0, why: 'no answer', retryAfterMs: 1 })
    nowMs += intervalMs
    breaker = probed(breaker, nowMs)
    assert.equal(passage(breaker, nowMs).kind, 'stopped', 'a second one waits for the first')
    breaker = afterRequest(breaker, fault, true, nowMs)
  }
})

test('a probe that is answered closes the breaker', () => {
  const breaker = afterRequest(probed(opened(), 2000), answered, true, 2100)
  assert.deepEqual(passage(breaker, 2100), { kind: 'pass', breaker: closedBreaker, probe: false })
})

test('faults of requests that began before it opened change nothing', () => {
  const breaker = opened()
  assert.deepEqual(afterRequest(breaker, fault, false, 500), breaker)
  const probing = probed(breaker, 2000)
  assert.deepEqual(afterRequest(probing, fault, false, 2100), probing)
})

test('a probe that was never sent leaves the place to the next caller', () => {
  const breaker = afterRequest(probed(opened(), 2000), { kind: 'not-asked' }, true, 2100)
  probed(breaker, 2100)
})
