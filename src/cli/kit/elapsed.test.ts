import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { testCli } from '../../../test/fakes/test-cli.ts'
import { withElapsed } from './elapsed.ts'

test('a person at a terminal sees how long a call takes and how far it is, a pipe sees nothing', async () => {
  for (const isTerminal of [true, false]) {
    const { cli, clock, stderr } = testCli({})
    const timers = manualTimers(clock)
    const work = async (): Promise<string> => {
      for (let second = 0; second < 3; second++) {
        timers.advance(1000)
        await new Promise(setImmediate)
      }
      return 'done'
    }
    const looks = [() => Promise.resolve('300 of 600'), () => Promise.reject(new Error('no such call'))]
    const look = () => (looks.shift() ?? (() => Promise.resolve(null)))()
    const answer = await withElapsed({ ...cli, timers, err: { ...cli.err, isTerminal } }, 'applying', work, look)
    assert.equal(answer, 'done')
    const shown = stderr().split('\r\u001b[K')
    assert.deepEqual(shown, isTerminal ? ['', 'applying: 1 s', 'applying: 2 s, 300 of 600', 'applying: 3 s', ''] : [''])
  }
})
