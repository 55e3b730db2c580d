import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { hourMs, taskAuthority } from '../../../test/fakes/signed-tasks.ts'
import { beginTask, readTask, type BeginParts } from './begin-task.ts'
import type { BeginOutcome } from './helped-tasks.ts'
import type { TaskingAgent } from './task-link.ts'

const nowMs = Date.UTC(2027, 0, 1)

/** An agent whose pauses are over at once, by its monotonic clock only. */
const agentAt = (wallMs: number) => {
  const clock = manualClock(wallMs)
  const agent = {
    clock,
    random: { unit: () => 0.5 },
    timers: {
      after: (ms: number, run: () => void) => {
        const soon = setImmediate(() => {
          clock.advance(ms)
          run()
        })
        return () => clearImmediate(soon)
      },
    },
    log: silentLog,
    signal: new AbortController().signal,
  } as unknown as TaskingAgent
  return { agent, clock }
}

const task = readTask(taskAuthority(nowMs).task()) ?? assert.fail()

/** The last outcome stays. */
const partsWith = (outcomes: readonly BeginOutcome[], fetches = () => 1): BeginParts => {
  let asked = 0
  return {
    helper: { begin: () => Promise.resolve(outcomes[Math.min(asked++, outcomes.length - 1)] ?? assert.fail()) },
    statements: { current: () => Promise.resolve('statement'), fresh: () => Promise.resolve('fresh') },
    files: {
      fetch: () =>
        Promise.resolve(
          fetches() === 1 ? { kind: 'file', path: '/file' } : { kind: 'refused', fault: 'NOT_DONE', why: 'it is gone' },
        ),
    },
  }
}

const unsure: BeginOutcome = { kind: 'again', why: 'no answer', isUnsure: true }
const unjudged: BeginOutcome = { kind: 'refused', fault: 'TYPE_NOT_ALLOWED', why: 'no [tasks]', isUnjudged: true }

test('once the helper may have begun, only its own verdict ends a task', async () => {
  const { agent } = agentAt(nowMs)
  assert.equal((await beginTask(agent, partsWith([unsure, unjudged]), task))?.kind, 'left')
  assert.equal((await beginTask(agent, partsWith([{ kind: 'again', why: 'busy' }, unjudged]), task))?.kind, 'refused')
  assert.equal((await beginTask(agent, partsWith([unsure, { kind: 'known' }]), task))?.kind, 'known')
  const judged: BeginOutcome = { kind: 'refused', fault: 'WRONG_EPOCH', why: 'why' }
  assert.deepEqual(await beginTask(agent, partsWith([unsure, judged]), task), judged)
})

test('a file is not fetched again for a task that may have begun', async () => {
  let fetched = 0
  const parts = partsWith([unsure, { kind: 'known' }], () => ++fetched)
  assert.equal((await beginTask(agentAt(nowMs).agent, parts, task))?.kind, 'known')
  assert.equal(fetched, 1)
})

test('no clock of the host says that a task is over; after its whole life it is left to the plane', async () => {
  const late = agentAt(nowMs + 1000 * hourMs)
  assert.equal((await beginTask(late.agent, partsWith([unsure, { kind: 'begun' }]), task))?.kind, 'begun')
  const { agent, clock } = agentAt(nowMs)
  assert.equal((await beginTask(agent, partsWith([unsure]), task))?.kind, 'left')
  assert.ok(clock.monotonicMs() >= hourMs)
})
