import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import type { HelperServices } from './helped-runner.ts'
import { openRunnerChoice } from './open-runner.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'

const core = { clock: systemClock, timers: systemTimers, log: silentLog }

test('the first answer of a helper that was chosen while it was away has the services started, once', async (t) => {
  const services: HelperServices = {
    start: async () => ({ outcome: 'started' }),
    stop: async () => ({}),
    status: async () => ({ services: [] }),
  }
  let isKnown = false
  const choice = openRunnerChoice(core, tempFolder(t), async () => ({ isKnown, services }))
  assert.deepEqual(await choice.choose(true), [])
  const before = choice.runner()
  assert.deepEqual([choice.kind(), await choice.isOutdated()], ['helper', false])
  isKnown = true
  assert.equal(await choice.isOutdated(), true)
  assert.deepEqual(await choice.choose(true), [])
  assert.equal(choice.runner(), before)
  assert.equal(await choice.isOutdated(), false)
})
