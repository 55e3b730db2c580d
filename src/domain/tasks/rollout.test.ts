import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { noonMs } from '../../../test/fakes/sample-rows.ts'
import { someRollout } from '../../../test/fakes/task-rows.ts'
import { nextStep, rolloutLifeMs, type Rollout, type TaskCounts } from './rollout.ts'

const none: TaskCounts = { queued: 0, dispatched: 0, completed: 0, failed: 0, expired: 0, cancelled: 0, unknown: 0 }

const step = (changes: Partial<Rollout>, counts: Partial<TaskCounts> = {}, queuerEnded: string | null = null) =>
  nextStep({ rollout: someRollout(changes), counts: { ...none, ...counts }, queuerEnded, nowMs: noonMs })

test('the next nodes get their tasks while there is room', () => {
  assert.deepEqual(step({}), { kind: 'make', nodes: ['gpu-001', 'gpu-002'] })
  assert.deepEqual(step({ reached: 2 }, { queued: 1, completed: 1 }), { kind: 'make', nodes: ['gpu-003'] })
  assert.deepEqual(step({ reached: 2 }, { queued: 1, dispatched: 1 }), { kind: 'wait' })
})

test('failed, unknown, expired and refused tasks count towards the limit, and cancelled ones do not', () => {
  assert.equal(step({ reached: 2, refused: 1 }, { failed: 1 }).kind, 'hold')
  assert.equal(step({ reached: 2 }, { unknown: 1, expired: 1 }).kind, 'hold')
  assert.equal(step({ reached: 2 }, { cancelled: 2 }).kind, 'make')
  assert.equal(step({ reached: 2, forgiven: 1 }, { failed: 2 }).kind, 'make')
})

test('it is done when its last task has ended, however it ended', () => {
  assert.equal(step({ reached: 5 }, { completed: 4, dispatched: 1 }).kind, 'wait')
  assert.equal(step({ reached: 5 }, { completed: 2, failed: 3 }).kind, 'finish')
})

test('a held one waits for an operator, and is cancelled when its queuer has ended or after its life', () => {
  const held = { kind: 'held', atMs: noonMs, why: 'failures' } as const
  assert.equal(step({ state: held }).kind, 'wait')
  assert.equal(step({ state: held }, {}, 'the key was revoked').kind, 'give-up')
  assert.equal(step({ state: held, createdAtMs: noonMs - rolloutLifeMs }).kind, 'give-up')
})

test('never are more tasks open than wanted, and every node is reached once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(fc.nat(5), { maxLength: 60 }), (concurrency, endings) => {
      let rollout = someRollout({ concurrency, failureLimit: 1000 })
      let counts = none
      const made: string[] = []
      for (const ending of [...endings, ...Array.from({ length: 20 }, () => 5)]) {
        const next = nextStep({ rollout, counts, queuerEnded: null, nowMs: noonMs })
        if (next.kind === 'make') {
          made.push(...next.nodes)
          rollout = { ...rollout, reached: rollout.reached + next.nodes.length }
          counts = { ...counts, queued: counts.queued + next.nodes.length }
        }
        assert.ok(counts.queued <= concurrency)
        const ended = Math.min(ending, counts.queued)
        counts = { ...counts, queued: counts.queued - ended, completed: counts.completed + ended }
      }
      assert.deepEqual(made, rollout.nodes)
      assert.equal(nextStep({ rollout, counts, queuerEnded: null, nowMs: noonMs }).kind, 'finish')
    }),
  )
})
