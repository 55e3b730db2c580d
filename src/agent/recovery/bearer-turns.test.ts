import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { openBearerTurns } from './bearer-turns.ts'

const setUp = () => {
  const timers = manualTimers(manualClock(0))
  const answers = { rehearsal: Promise.withResolvers<string>(), renewal: Promise.withResolvers<string>() }
  return { timers, turns: openBearerTurns(timers), answers }
}

/** What is ready by then has gone on. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a renewal is sent when the rehearsal that is under way has its answer', async () => {
  const { timers, turns, answers } = setUp()
  const sent: string[] = []
  const rehearsal = turns.rehearse(() => answers.rehearsal.promise)
  const renewal = turns.renew(async () => sent.push('renewal'))
  await settled()
  assert.deepEqual(sent, [])
  answers.rehearsal.resolve('passed')
  await renewal
  assert.deepEqual([await rehearsal, sent, timers.waiting()], ['passed', ['renewal'], 0])
})

test('a renewal waits 5 s at most, and no longer where the rehearsal fails', async () => {
  const { timers, turns, answers } = setUp()
  void turns.rehearse(() => answers.rehearsal.promise)?.catch(() => undefined)
  const renewal = turns.renew(async () => 'renewed')
  timers.advance(5_000)
  assert.equal(await renewal, 'renewed')
  const another = turns.renew(async () => 'renewed')
  answers.rehearsal.reject(new Error('no answer'))
  assert.deepEqual([await another, timers.waiting()], ['renewed', 0])
})

test('no rehearsal is sent while a renewal is under way, and the next one after it is', async () => {
  const { turns, answers } = setUp()
  const renewal = turns.renew(() => answers.renewal.promise)
  const sent = () => turns.rehearse(async () => 'passed')
  assert.equal(sent(), null)
  answers.renewal.reject(new Error('no answer'))
  await assert.rejects(renewal)
  assert.equal(await sent(), 'passed')
})
