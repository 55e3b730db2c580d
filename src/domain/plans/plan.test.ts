import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { alice as by, bob, hour, nodeRow, noonMs, row, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { revocationOf } from './plan-effects.ts'
import { changesSince, decideApplyPlan, decideKeepPlan, planLifeMs, type PlanEffect } from './plan.ts'

const action = { kind: 'revoke-nodes', nodes: ['gpu-001'], reason: 'stolen' } as const

const kept = (effects: readonly PlanEffect[]) =>
  row(decideKeepPlan({ id: 'p1', action, effects, by, nowMs: noonMs }).plan)

const apply = (effects: readonly PlanEffect[], now: readonly PlanEffect[], nowMs = noonMs) =>
  decideApplyPlan({ plan: kept(effects), now, by: bob, nowMs })

const active = revocationOf(nodeRow('active').value)

test('a plan that is still true is applied once, by the first caller', () => {
  const done = apply([active], [active])
  assert(done.kind === 'decided')
  const again = decideApplyPlan({ plan: row(done.plan), now: [active], by, nowMs: noonMs })
  assert.equal(again.kind === 'refused' && again.code, 'PLAN_USED')
})

test('a plan is refused with what has changed: membership, work, or whom it concerns', () => {
  const cases: readonly [readonly PlanEffect[], RegExp][] = [
    [[revocationOf(nodeRow('quarantined').value)], /node gpu-001 was active, and is quarantined/],
    [[revocationOf(nodeRow('active', { allocations: 3 }).value)], /is 3 allocations/],
    [[], /node gpu-001 is not concerned any more/],
    [[active, revocationOf(nodeRow('active', { id: 'gpu-002' }).value)], /node gpu-002 is new/],
  ]
  for (const [now, said] of cases) {
    const refused = apply([active], now)
    assert(refused.kind === 'refused')
    assert.equal(refused.code, 'PLAN_STALE')
    assert.match(refused.detail ?? '', said)
  }
})

test('a renewal in between makes no plan stale: it follows from nothing of it', () => {
  const renewed = nodeRow('active', {
    membership: { kind: 'active', sinceMs: noonMs - hour, slots: slots({ current: slot('b2') }) },
    counter: 99,
  })
  assert.deepEqual(changesSince([active], [revocationOf(renewed.value)]), [])
})

test('a plan expires, so that it is not applied a day after it was computed', () => {
  const late = apply([active], [active], noonMs + planLifeMs)
  assert.equal(late.kind === 'refused' && late.code, 'PLAN_NOT_FOUND')
})

test('two sets of effects have no changes between them exactly when they are the same', () => {
  const line = fc.record({
    subject: fc.constantFrom('node a', 'node b', 'node c'),
    effect: fc.constantFrom('revoked', 'nothing'),
    loses: fc.constantFrom('at once' as const, null),
    unrecoverable: fc.constantFrom('x', null),
    facts: fc.array(fc.constantFrom('active', 'inactive', '1 allocation'), { maxLength: 2 }),
  })
  const lines = fc.uniqueArray(line, { selector: ({ subject }) => subject })
  const sorted = (effects: readonly PlanEffect[]) =>
    effects.toSorted((one, other) => (one.subject < other.subject ? -1 : 1))
  fc.assert(
    fc.property(lines, lines, (before, now) => {
      const same = JSON.stringify(sorted(before)) === JSON.stringify(sorted(now))
      assert.equal(changesSince(before, now).length === 0, same)
    }),
  )
})
