import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { slots } from '#domain/issuers/issuer-pace.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { openIssuerGate, type IssuerGate, type IssuerSlot } from './issuer-gate.ts'

const answered = { kind: 'answered' } as const
const fault = { kind: 'fault', why: 'no answer within 15 s' } as const

const openGate = () => {
  const clock = manualClock(1_800_000_000_000)
  const timers = manualTimers(clock)
  return { clock, timers, gate: openIssuerGate({ clock, timers }, 'corp') }
}

const slotOf = async (gate: IssuerGate): Promise<IssuerSlot> => {
  const entered = await gate.enter()
  assert.ok(!isRefusal(entered), `refused: ${isRefusal(entered) ? entered.detail : ''}`)
  return entered
}

const refusalOf = async (gate: IssuerGate): Promise<Refusal> => {
  const entered = await gate.enter()
  assert.ok(isRefusal(entered))
  return entered
}

const fail = async (gate: IssuerGate, times: number): Promise<void> => {
  for (let time = 0; time < times; time++) (await slotOf(gate)).leave(fault)
}

test('an issuer is asked for 16 certificates at once, and the next caller waits for one of them', async () => {
  const { gate } = openGate()
  const taken = await Promise.all(Array.from({ length: slots }, () => slotOf(gate)))
  let isIn = false
  const next = slotOf(gate).then((slot) => {
    isIn = true
    return slot
  })
  await Promise.resolve()
  assert.deepEqual([isIn, gate.view().asking, gate.view().waiting], [false, slots, 1])
  taken[0]?.leave(answered)
  taken[0]?.leave(answered)
  await next
  assert.deepEqual([gate.view().asking, gate.view().waiting], [slots, 0])
})

test('beyond what it serves in ten seconds each caller gets a time of its own, spaced by the rate', async () => {
  const { gate } = openGate()
  for (let caller = 0; caller < slots; caller++) await slotOf(gate)
  // 20 a second are assumed, so 200 wait; none of them is let in here.
  for (let caller = 0; caller < 200; caller++) void gate.enter()
  const [one, other] = [await refusalOf(gate), await refusalOf(gate)]
  assert.equal(one.code, 'ISSUER_UNAVAILABLE')
  assert.equal(one.retryAfterMs, 10_050)
  assert.equal(other.retryAfterMs, 10_100)
})

test('what it admits follows the rate at which the issuer answered while all slots were taken', async () => {
  const { gate, clock } = openGate()
  let held = await Promise.all(Array.from({ length: slots }, () => slotOf(gate)))
  for (let second = 0; second < 30; second++) {
    const waiting = slotOf(gate)
    clock.advance(1000)
    held.shift()?.leave(answered)
    held = [...held, await waiting]
  }
  const { perSecond } = gate.view()
  assert.ok(perSecond < 1.1 && perSecond > 0.9, `${perSecond} a second`)
  // One a second: ten wait, and no more.
  for (let caller = 0; caller < 10; caller++) void gate.enter()
  await refusalOf(gate)
})

test('nobody waits longer than ten seconds for a slot of an issuer that has become slower', async () => {
  const { gate, timers } = openGate()
  for (let caller = 0; caller < slots; caller++) await slotOf(gate)
  const waiting = refusalOf(gate)
  timers.advance(10_000)
  assert.match((await waiting).detail ?? '', /slower than it was/)
  assert.equal(gate.view().waiting, 0)
})

test('after five faults in a row it is not asked, those that wait are told, and one probe that succeeds ends it', async () => {
  const { gate, clock, timers } = openGate()
  await fail(gate, 4)
  ;(await slotOf(gate)).leave(answered)
  await fail(gate, 4)
  const held = await Promise.all(Array.from({ length: slots }, () => slotOf(gate)))
  const waiting = [refusalOf(gate), refusalOf(gate), refusalOf(gate)]
  await Promise.resolve()
  held[0]?.leave(fault)
  for (const one of waiting) assert.match((await one).detail ?? '', /corp: no answer within 15 s/)
  const { away } = gate.view()
  assert.deepEqual([away?.sinceMs, away?.why], [clock.nowMs(), fault.why])
  for (const slot of held) slot.leave(fault)
  const stopped = await refusalOf(gate)
  assert.ok((stopped.retryAfterMs ?? 0) >= 2000)
  timers.advance(2000)
  const probe = await slotOf(gate)
  await refusalOf(gate)
  probe.leave(answered)
  assert.equal(gate.view().away, null)
  assert.equal(gate.view().answeredAtMs, clock.nowMs())
  await slotOf(gate)
})

test('what an issuer has refused to sign is shown for an hour, and opens no breaker', async () => {
  const { gate, clock } = openGate()
  for (let times = 0; times < 6; times++) (await slotOf(gate)).leave({ kind: 'refused', why: 'unknown role: web' })
  const atMs = clock.nowMs()
  const { away, refused, answeredAtMs } = gate.view()
  assert.deepEqual([away, refused, answeredAtMs], [null, { atMs, why: 'unknown role: web' }, atMs])
  ;(await slotOf(gate)).leave(answered)
  assert.equal(gate.view().refused?.atMs, atMs)
  clock.advance(3_600_000)
  assert.equal(gate.view().refused, null)
})

test('a caller that goes away before it has asked leaves the probe to the next one, and a refusal of the issuer is an answer', async () => {
  const { gate, timers } = openGate()
  await fail(gate, 5)
  timers.advance(2000)
  ;(await slotOf(gate)).leave({ kind: 'not-asked' })
  ;(await slotOf(gate)).leave(answered)
  for (let time = 0; time < 9; time++) (await slotOf(gate)).leave(answered)
  assert.equal(gate.view().away, null)
})

test('since when an issuer is away is said in wall time, also where that was set meanwhile', async () => {
  const { gate, clock, timers } = openGate()
  await fail(gate, 5)
  clock.set(clock.nowMs() + 3_600_000)
  timers.advance(1000)
  assert.equal(gate.view().away?.sinceMs, clock.nowMs() - 1000)
})
