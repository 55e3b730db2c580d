import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { testCli } from '../../../test/fakes/test-cli.ts'
import { withElapsed } from './elapsed.ts'

test('a person at a terminal sees how long a call takes, a pipe sees nothing', async () => {
  for (const isTerminal of [true, false]) {
    const { cli, clock, stderr } = testCli({})
    const timers = manualTimers(clock)
    const err = { ...cli.err, isTerminal }
    const answer = await withElapsed({ ...cli, timers, err }, '600 nodes', () => {
      timers.advance(2000)
      return Promise.resolve('done')
    })
    assert.equal(answer, 'done')
    assert.equal(stderr().includes('\r600 nodes: 2 s'), isTerminal)
    assert.equal(stderr().endsWith('\u001b[K'), isTerminal)
  }
})
