import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rotate, unconnected } from './rotation.ts'
import type { Credential, Ended, Moment, RotationAction, RotationEvent, RotationState } from './rotation-state.ts'

const at: Moment = { nowMs: 1_000_000, monotonicMs: 1_000_000, unit: 0.5 }
const [first, second, third]: [Credential, Credential, Credential] = [
  { serial: 'a', notAfterMs: 2_000_000 },
  { serial: 'b', notAfterMs: 3_000_000 },
  { serial: 'c', notAfterMs: 4_000_000 },
]
const soon: Ended = { use: 'soon', retryAfterMs: null, former: null }

type Step = { state: RotationState; actions: readonly RotationAction[] }

const run = (events: readonly RotationEvent[], from: RotationState = unconnected(first), when = at): Step => {
  let step: Step = { state: from, actions: [] }
  for (const event of events) step = rotate(step.state, event, when)
  return step
}
const opens = (channel: number): RotationEvent[] => [
  { kind: 'opened', channel },
  { kind: 'healthy', channel },
]
const steady = run([{ kind: 'tick' }, ...opens(1)]).state
const appeared = (newest: Credential): RotationEvent => ({ kind: 'appeared', newest })
const ended = (channel: number, because: Partial<Ended> = {}): RotationEvent => ({
  kind: 'ended',
  channel,
  because: { ...soon, ...because },
})
const proving = run([appeared(second)], steady).state
const draining = run(opens(2), proving).state

test('a first channel is used once it is open and has answered a ping', () => {
  const opening = run([{ kind: 'tick' }])
  assert.deepEqual(opening.actions, [{ kind: 'open', channel: 1, serial: 'a' }])
  const checking = run([{ kind: 'opened', channel: 1 }], opening.state)
  assert.deepEqual(checking.actions, [{ kind: 'check', channel: 1, withinMs: 15_000 }])
  const served = run([{ kind: 'healthy', channel: 1 }], checking.state)
  assert.deepEqual(served.actions, [{ kind: 'swap', channel: 1, serial: 'a' }])
  assert.equal(served.state.kind, 'steady')
})

test('a new certificate gets a channel of its own; the swap comes after its health, and the old one drains', () => {
  const opening = run([appeared(second)], steady)
  assert.deepEqual(opening.actions, [{ kind: 'open', channel: 2, serial: 'b' }])
  const checking = run([{ kind: 'opened', channel: 2 }], opening.state)
  assert.deepEqual(checking.actions, [{ kind: 'check', channel: 2, withinMs: 5_000 }])
  const swapped = run([{ kind: 'healthy', channel: 2 }], checking.state)
  assert.deepEqual(swapped.actions, [
    { kind: 'swap', channel: 2, serial: 'b' },
    { kind: 'drain', channel: 1, withinMs: 30_000 },
  ])
  for (const kind of ['drained', 'drain-deadline'] as const) {
    const over = run([{ kind, channel: 1 }], swapped.state)
    assert.deepEqual(over.actions, [{ kind: 'close', channel: 1 }])
    assert.equal(over.state.kind, 'steady')
  }
})

test('a new channel that fails leaves the old one alone and is tried again, sooner than the old certificate ends', () => {
  const failed = run([ended(2)], proving)
  assert.equal(failed.state.kind, 'proving')
  assert.deepEqual(failed.actions, [{ kind: 'wait', ms: 500 }])
  const again = run([{ kind: 'tick' }], failed.state)
  assert.deepEqual(again.actions, [{ kind: 'open', channel: 3, serial: 'b' }])
  const late: Moment = { ...at, nowMs: first.notAfterMs - 10_000, unit: 0.99 }
  let state = proving
  for (let channel = 2; channel < 12; channel += 1) {
    const after = run([ended(channel, { use: 'slow', retryAfterMs: 3_600_000 })], state, late)
    assert.deepEqual(after.actions, [{ kind: 'wait', ms: 5_000 }])
    state = run([{ kind: 'tick' }], after.state, late).state
  }
})

test('a certificate the plane does not know and that never worked is given up for the one before', () => {
  for (const use of ['unknown-certificate', 'rejoin'] as const) {
    const kept = run([ended(2, { use, former: first })], proving)
    assert.deepEqual(kept.actions, [{ kind: 'give-up', serial: 'b' }])
    assert.equal(kept.state.kind, 'steady')
  }
  const alone = run([ended(1), ended(2, { use: 'unknown-certificate', former: first })], proving)
  assert.deepEqual(
    alone.actions.map(({ kind }) => kind),
    ['give-up', 'wait'],
  )
  const again = run([{ kind: 'tick' }], alone.state)
  assert.deepEqual(again.actions, [{ kind: 'open', channel: 3, serial: 'a' }])
})

test('an identity the plane refuses for good ends the session, but not while a channel works', () => {
  const refused = run([{ kind: 'tick' }, ended(1, { use: 'rejoin' })])
  assert.deepEqual(refused.actions, [{ kind: 'end', how: 'rejoin' }])
  const expired = { ...first, notAfterMs: at.nowMs }
  const noWayBack = run([{ kind: 'tick' }, ended(1, { use: 'unknown-certificate', former: expired })])
  assert.deepEqual(noWayBack.actions, [{ kind: 'end', how: 'rejoin' }])
  const revoked = run([{ kind: 'tick' }, ended(1, { use: 'revoked' })])
  assert.deepEqual(revoked.actions, [{ kind: 'end', how: 'revoked' }])
  for (const use of ['rejoin', 'revoked', 'unknown-certificate'] as const) {
    assert.equal(run([ended(2, { use })], proving).state.kind, 'proving')
  }
})

test('when the old channel ends first the new one goes on alone, at once where it was waiting', () => {
  const alone = run([ended(1)], proving)
  assert.equal(alone.state.kind, 'connecting')
  assert.deepEqual(run(opens(2), alone.state).actions, [{ kind: 'swap', channel: 2, serial: 'b' }])
  const waiting = run([ended(2), ended(1)], proving)
  assert.equal(waiting.state.kind, 'disconnected')
  assert.equal(waiting.actions[0]?.kind, 'wait')
})

test('when the new channel is cut while the old one drains, the old one serves again', () => {
  const back = run([ended(2)], draining)
  assert.deepEqual(back.actions, [
    { kind: 'swap', channel: 1, serial: 'a' },
    { kind: 'wait', ms: 500 },
  ])
  assert.deepEqual(run([{ kind: 'tick' }], back.state).actions, [{ kind: 'open', channel: 3, serial: 'b' }])
})

test('a third certificate never makes a third channel', () => {
  const whileProving = run([appeared(third)], proving)
  assert.deepEqual(whileProving.actions, [
    { kind: 'close', channel: 2 },
    { kind: 'open', channel: 3, serial: 'c' },
  ])
  const whileDraining = run([appeared(third)], draining)
  assert.deepEqual(whileDraining.actions, [
    { kind: 'close', channel: 1 },
    { kind: 'open', channel: 3, serial: 'c' },
  ])
})

test('a certificate that appears while there is no channel is used at once, or right after the one being opened', () => {
  const waiting = run([{ kind: 'tick' }, ended(1)])
  assert.deepEqual(run([appeared(second)], waiting.state).actions, [{ kind: 'open', channel: 2, serial: 'b' }])
  const opening = run([{ kind: 'tick' }, appeared(second)])
  assert.deepEqual(opening.actions, [])
  assert.deepEqual(run(opens(1), opening.state).actions, [
    { kind: 'swap', channel: 1, serial: 'a' },
    { kind: 'open', channel: 2, serial: 'b' },
  ])
  const refused = run([ended(1, { use: 'unknown-certificate', former: null })], opening.state)
  assert.deepEqual(refused.actions, [{ kind: 'open', channel: 2, serial: 'b' }])
})

test('a channel that is cut as soon as it is open is no success: the waits get longer, and never longer than 30 s', () => {
  let state = steady
  const waits: number[] = []
  for (let channel = 1; channel < 12; channel += 1) {
    const lost = run([ended(channel)], state)
    assert.ok(lost.actions[0]?.kind === 'wait')
    waits.push(lost.actions[0].ms)
    state = run([{ kind: 'tick' }, ...opens(channel + 1)], lost.state).state
  }
  assert.deepEqual(waits.slice(0, 4), [500, 1_000, 2_000, 4_000])
  assert.equal(Math.max(...waits), 15_000)
  const lasted = rotate(state, ended(12), { ...at, monotonicMs: at.monotonicMs + 60_000 })
  assert.deepEqual(lasted.actions, [{ kind: 'wait', ms: 500 }])
})

test('a nudge ends a wait and forgets the failures before it', () => {
  const failed = run([ended(2), { kind: 'tick' }, ended(3)], proving)
  assert.deepEqual(failed.actions, [{ kind: 'wait', ms: 1_000 }])
  const nudged = run([{ kind: 'nudged' }], failed.state)
  assert.deepEqual(nudged.actions, [{ kind: 'open', channel: 4, serial: 'b' }])
  assert.deepEqual(run([ended(4)], nudged.state).actions, [{ kind: 'wait', ms: 500 }])
  assert.deepEqual(run([{ kind: 'nudged' }], steady).actions, [])
})

test('when the old certificate expires, a new one that waits is tried at once', () => {
  const waiting = run([ended(2)], proving).state
  assert.deepEqual(run([{ kind: 'expired', serial: 'a' }], waiting).actions, [
    { kind: 'open', channel: 3, serial: 'b' },
  ])
  assert.deepEqual(run([{ kind: 'expired', serial: 'x' }], waiting).actions, [])
})

test('the retry time a plane names is kept, though it may be later than any of ours', () => {
  const failed = run([{ kind: 'tick' }, ended(1, { retryAfterMs: 60_000 })])
  assert.deepEqual(failed.actions, [{ kind: 'wait', ms: 63_000 }])
})

test('an agent that is stopped closes what it has', () => {
  const stopped = run([{ kind: 'stopped' }], draining)
  assert.deepEqual(stopped.actions, [
    { kind: 'close', channel: 2 },
    { kind: 'close', channel: 1 },
    { kind: 'end', how: 'stopped' },
  ])
  assert.deepEqual(run([{ kind: 'tick' }, appeared(third)], stopped.state).actions, [])
})
