import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { openTurns } from './turns.ts'

const slow = (): { run: () => Promise<string>; end: () => void } => {
  const { promise, resolve } = Promise.withResolvers<string>()
  return { run: () => promise, end: () => resolve('done') }
}
const codeOf = (said: unknown): string => (typeof said === 'string' ? said : (said as { code: string }).code)

test('slow checks wait for one another, and hold up no reload and no service', async () => {
  const turns = openTurns(manualTimers(manualClock(0)))
  const checks = Array.from({ length: 33 }, slow)
  const asked = checks.map(({ run }, at) => turns.take('check', String(at), run))
  assert.equal(codeOf(await asked[32]), 'BUSY', 'eight run, and twenty-four wait')
  assert.equal(codeOf(await turns.take('check', '3', async () => '')), 'BUSY', 'that one has its turn')
  assert.equal(await turns.take('reload', '3', async () => 'reloaded'), 'reloaded')
  assert.equal(await turns.take('service', '3', async () => 'started'), 'started')
  for (const { end } of checks) end()
  assert.deepEqual(new Set((await Promise.all(asked)).slice(0, 32)), new Set(['done']))
  assert.equal(await turns.take('check', '3', async () => 'again'), 'again')
})

test('one that waits longer than a minute is refused, and its turn goes to nobody', async () => {
  const clock = manualClock(0)
  const turns = openTurns(manualTimers(clock))
  const running = Array.from({ length: 4 }, slow)
  const asked = running.map(({ run }, at) => turns.take('reload', String(at), run))
  const late = turns.take('reload', 'late', () => assert.fail('it was refused'))
  clock.advance(60_000)
  assert.equal(codeOf(await late), 'BUSY')
  for (const { end } of running) end()
  await Promise.all(asked)
  const next = Array.from({ length: 4 }, slow)
  const again = next.map(({ run }, at) => turns.take('reload', String(at), run))
  for (const { end } of next) end()
  assert.deepEqual(await Promise.all(again), Array(4).fill('done'))
})

test('one that fails gives its turn back', async () => {
  const turns = openTurns(manualTimers(manualClock(0)))
  for (let round = 0; round < 10; round++)
    await assert.rejects(
      turns.take('reload', 'web', () => Promise.reject(new Error('no'))),
      /no/,
    )
})
