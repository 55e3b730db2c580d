import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { noonMs } from '../../../test/fakes/sample-rows.ts'
import { someRollout } from '../../../test/fakes/task-rows.ts'
import { nextStep, nodesInPart, rolloutLifeMs, type OpenAndFailed, type Rollout } from './rollout.ts'

const none: OpenAndFailed = { open: 0, failed: 0 }

const step = (changes: Partial<Rollout>, counts: Partial<OpenAndFailed> = {}, keyEnded: string | null = null) =>
  nextStep({ rollout: someRollout(changes), counts: { ...none, ...counts }, keyEnded, nowMs: noonMs })

test('the next nodes get their tasks while there is room', () => {
  assert.deepEqual(step({}), { kind: 'make', part: 0, from: 0, count: 2 })
  assert.deepEqual(step({ reached: 2 }, { open: 1 }), { kind: 'make', part: 0, from: 2, count: 1 })
  assert.deepEqual(step({ reached: 2 }, { open: 2 }), { kind: 'wait' })
})

test('a step stays within one part of the list', () => {
  const long = { nodes: 1000, concurrency: 500, failureLimit: 1000 }
  assert.deepEqual(step(long), { kind: 'make', part: 0, from: 0, count: nodesInPart })
  assert.deepEqual(step({ ...long, reached: 230 }, { open: 3 }), { kind: 'make', part: 2, from: 30, count: 70 })
  assert.deepEqual(step({ ...long, nodes: 205, reached: 200 }), { kind: 'make', part: 2, from: 0, count: 5 })
})

test('a rollout whose row no plane wrote makes nothing', () => {
  assert.equal(step({ forged: true }).kind, 'give-up')
})

test('failed and refused tasks count towards the limit', () => {
  assert.equal(step({ reached: 2, refused: 1 }, { failed: 1 }).kind, 'hold')
  assert.equal(step({ reached: 2 }, { failed: 2 }).kind, 'hold')
  assert.equal(step({ reached: 2 }).kind, 'make')
  assert.equal(step({ reached: 2, forgiven: 1 }, { failed: 2 }).kind, 'make')
})

test('it is done when its last task has ended, however it ended', () => {
  assert.equal(step({ reached: 5 }, { open: 1 }).kind, 'wait')
  assert.equal(step({ reached: 5 }, { failed: 3 }).kind, 'finish')
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
      const made: number[] = []
      for (const ending of [...endings, ...Array.from({ length: 20 }, () => 5)]) {
        const next = nextStep({ rollout, counts, keyEnded: null, nowMs: noonMs })
        if (next.kind === 'make') {
          made.push(...Array.from({ length: next.count }, (_, at) => next.part * nodesInPart + next.from + at))
          rollout = { ...rollout, reached: rollout.reached + next.count }
          counts = { ...counts, open: counts.open + next.count }
        }
        assert.ok(counts.open <= concurrency)
        counts = { ...counts, open: counts.open - Math.min(ending, counts.open) }
      }
      assert.deepEqual(made, [0, 1, 2, 3, 4])
      assert.equal(nextStep({ rollout, counts, keyEnded: null, nowMs: noonMs }).kind, 'finish')
    }),
  )
})
