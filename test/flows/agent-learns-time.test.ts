// What an agent says while its clock is wrong, at every moment an operator could ask.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { explainAgent } from '#agent/diagnostics/explain.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { openJudgedClock } from '#agent/core/judged-clock.ts'
import { learnTime, reviewClock, type TimeLearner } from '#agent/link/learn-time.ts'
import { expired } from '#agent/state/sound-credentials.ts'
import { openDiagnostics } from '#agent/diagnostics/open-diagnostics.ts'
import { conditionsOf } from '#agent/diagnostics/report.ts'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { tempFolder } from '../process/temp-folder.ts'

const hour = 3_600_000
const year = 365.25 * 24 * hour
const trueMs = Date.UTC(2026, 10, 15)
const identity = {
  current: { serial: 'aa', notAfterMs: trueMs + hour },
  clockToleranceMs: 300_000,
} as unknown as Identity

/** An agent that was started with its clock so far off, and judged its certificate by it. */
const startedAhead = (t: TestContext, aheadMs: number) => {
  const system = manualClock(trueMs + aheadMs)
  const timers = manualTimers(system)
  const clock = openJudgedClock(system)
  const stateFolder = tempFolder(t)
  const diagnostics = openDiagnostics({ clock, timers, log: silentLog }, { stateFolder, keyStorage: 'file' })
  const keeper = { credentials: () => ({ identity, request: null }) } as unknown as TimeLearner['keeper']
  const { record, storage } = diagnostics
  const conditions = () => conditionsOf(record.now().status.troubles, record.pressedSince(), storage.freeBytes())
  record.trouble('enrollment', expired({ clock }, identity), null, 'the-story')
  const wrong = (): string => {
    timers.advance(5_000)
    return explainAgent(stateFolder, system).wrong.join('\n')
  }
  assert.match(wrong(), /cert_expired at enrollment/)
  return { system, agent: { ...diagnostics, clock, keeper }, record, conditions, wrong }
}

test('what a wrong clock made of the certificate is taken back in the moment a statement shows that it is wrong', (t) => {
  const { agent, record, conditions, wrong } = startedAhead(t, 10 * year)
  learnTime(agent, trueMs + 5_000, agent.clock.reading())
  assert.deepEqual(
    conditions().map(({ name }) => name),
    ['clock_skew'],
  )
  assert.match(wrong(), /clock_skew/)
  assert.doesNotMatch(wrong(), /cert_expired/)
  const back = record.now().events.findLast(({ place }) => place === 'enrollment')
  assert.deepEqual([back?.event, back?.code, back?.correlation], ['succeeded', 'cert_expired', 'the-story'])
})

test('a clock that is ahead by less than is tolerated is right, and the plane still has the last word on the certificate', (t) => {
  const { agent, record, conditions } = startedAhead(t, hour + 60_000)
  learnTime(agent, agent.clock.nowMs() - 120_000, agent.clock.reading())
  assert.deepEqual(conditions(), [])
  record.trouble('enrollment', expired(agent, identity), null)
  learnTime(agent, agent.clock.nowMs(), agent.clock.reading())
  assert.equal(record.now().events.at(-1)?.code, 'cert_expired')
  assert.equal(record.now().events.at(-1)?.event, 'failed')
})

test('an expired certificate stays one when the clock is learned to be wrong the other way', (t) => {
  const { agent, wrong } = startedAhead(t, 2 * hour)
  learnTime(agent, trueMs + 20 * hour, agent.clock.reading())
  assert.match(wrong(), /clock_skew/)
  assert.match(wrong(), /cert_expired/)
})

test('a clock that is set right withdraws it before the plane answers', (t) => {
  const { system, agent, wrong } = startedAhead(t, 10 * year)
  system.set(trueMs)
  reviewClock(agent)
  assert.doesNotMatch(wrong(), /cert_expired/)
})
