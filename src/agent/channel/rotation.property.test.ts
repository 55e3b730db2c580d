// Whatever happens, in whatever order, also twice, late, or to channels that are long gone.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { longestWaitMs, rotate, unconnected } from './rotation.ts'
import type { Credential, Ended, Moment, RotationAction, RotationEvent, RotationState } from './rotation-state.ts'

type Which = 'latest' | 'other' | 'gone'

/** What happens next, before it is known which channels there are by then. */
type Happening =
  | { readonly kind: 'opened' | 'healthy' | 'drained' | 'drain-deadline'; readonly which: Which }
  | { readonly kind: 'ended'; readonly which: Which; readonly use: Ended['use']; readonly retryAfterMs: number | null }
  | { readonly kind: 'appeared' | 'expired' | 'nudged' | 'tick' | 'stopped' }
  | { readonly kind: 'passes'; readonly ms: number }

const which = fc.constantFrom<Which>('latest', 'latest', 'other', 'gone')
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('opened' as const), which }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('healthy' as const), which }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('drained' as const, 'drain-deadline' as const), which }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('ended' as const),
      which,
      use: fc.constantFrom<Ended['use']>('soon', 'soon', 'slow', 'unknown-certificate', 'rejoin', 'revoked'),
      retryAfterMs: fc.option(fc.nat(3_600_000)),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'appeared' as const }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'tick' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('expired' as const, 'nudged' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('passes' as const), ms: fc.nat(20_000) }) },
)
const histories = fc.array(happening, { maxLength: 60, size: 'max' })

const lifetimeMs = 60_000

/** A world that does what the rotation asks for, and looks at every action. */
const world = () => {
  let serial = 0
  let nowMs = 0
  let unit = 0.3
  const issue = (): Credential => ({ serial: String(++serial), notAfterMs: nowMs + lifetimeMs })
  let newest = issue()
  let former: Credential | null = null
  let proven = false
  let state: RotationState = unconnected(newest)
  /** Open or being opened, oldest first. */
  let live: { channel: number; serial: string; opened: boolean; healthy: boolean }[] = []
  let everOpened = 0
  let active: number | null = null
  let waitsMs: number | null = 0
  let ended: string | null = null

  const find = (channel: number) =>
    live.find((one) => one.channel === channel) ?? assert.fail(`${channel} is gone, or never was`)

  const obey = (action: RotationAction, refused: Ended | null): void => {
    assert.equal(ended, null, 'nothing is done after the end')
    switch (action.kind) {
      case 'open':
        assert.equal(action.channel, ++everOpened)
        assert.equal(action.serial, newest.serial)
        live.push({ channel: action.channel, serial: action.serial, opened: false, healthy: false })
        waitsMs = null
        return
      case 'check':
        return assert.ok(find(action.channel).opened)
      case 'swap': {
        const chosen = find(action.channel)
        assert.ok(chosen.healthy, 'a swap comes after health')
        assert.equal(chosen.serial, action.serial)
        active = action.channel
        if (chosen.serial === newest.serial) [proven, former] = [true, null]
        return
      }
      case 'drain':
        find(action.channel)
        return assert.notEqual(action.channel, active, 'the one in use does not drain')
      case 'close':
        find(action.channel)
        live = live.filter(({ channel }) => channel !== action.channel)
        if (active === action.channel) active = null
        return
      case 'wait':
        assert.ok(action.ms <= Math.max(longestWaitMs, (refused?.retryAfterMs ?? 0) * 1.1))
        waitsMs = action.ms
        return
      case 'give-up':
        assert.ok(!proven && former !== null && action.serial === newest.serial)
        ;[newest, former, proven] = [former, null, true]
        return
      case 'end':
        ended = action.how
        if (action.how === 'stopped') return
        // While a certificate is valid that the plane has not just refused for good, there is no end.
        assert.ok(refused !== null && ['unknown-certificate', 'rejoin', 'revoked'].includes(refused.use))
        assert.ok(refused.use === 'revoked' || former === null || former.notAfterMs <= nowMs)
        assert.equal(live.length, 0, 'no end while a channel is there')
    }
  }

  const apply = (event: RotationEvent): void => {
    const moment: Moment = { nowMs, monotonicMs: nowMs, unit }
    unit = (unit * 7 + 0.13) % 1
    const { state: next, actions } = rotate(state, event, moment)
    state = next
    for (const action of actions) obey(action, event.kind === 'ended' ? event.because : null)
    assert.ok(live.length <= 2, 'at most two channels')
    const opening = live.filter(({ channel }) => channel !== active)
    if (ended === null) assert.ok(active !== null || opening.length > 0 || waitsMs !== null, 'nothing is under way')
    if (ended !== null) assert.equal(live.length, 0, 'nothing stays open')
    else if (state.kind !== 'connecting')
      assert.ok(waitsMs !== null || live.some((one) => one.serial === newest.serial), 'the newest is not tried')
    assert.equal('active' in state ? state.active.channel : null, active)
  }

  const channelFor = (chosen: Which): number =>
    chosen === 'gone' ? everOpened - live.length : (live.at(chosen === 'latest' ? -1 : 0)?.channel ?? 0)

  const happens = (what: Happening): void => {
    switch (what.kind) {
      case 'passes':
        nowMs += what.ms
        return
      case 'opened':
      case 'healthy': {
        const one = live.find(({ channel }) => channel === channelFor(what.which))
        if (one !== undefined && what.kind === 'opened') one.opened = true
        // No channel answers a ping that it was not sent.
        if (one !== undefined && what.kind === 'healthy') {
          if (!one.opened) return
          one.healthy = true
        }
        return apply({ kind: what.kind, channel: channelFor(what.which) })
      }
      case 'drained':
      case 'drain-deadline':
        return apply({ kind: what.kind, channel: channelFor(what.which) })
      case 'ended': {
        const channel = channelFor(what.which)
        const gone = live.find((one) => one.channel === channel)
        live = live.filter((one) => one !== gone)
        if (active === channel) active = null
        const because = { use: what.use, retryAfterMs: what.retryAfterMs, former: proven ? null : former }
        return apply({ kind: 'ended', channel, because })
      }
      case 'appeared':
        if (ended !== null) return
        ;[former, newest, proven] = [newest, issue(), false]
        return apply({ kind: 'appeared', newest })
      case 'expired':
        return apply({ kind: 'expired', serial: newest.serial })
      case 'tick':
        waitsMs = null
        return apply({ kind: 'tick' })
      case 'nudged':
      case 'stopped':
        return apply({ kind: what.kind })
    }
  }

  return {
    happens,
    look: () => ({ state, live, newest, ended, active }),
  }
}

test('no order of events leaves the agent without a channel that works, opens or will be tried, while a certificate is valid', () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(histories, (events) => {
      const { happens, look } = world()
      for (const event of events) {
        happens(event)
        seen.add(look().state.kind)
      }
    }),
    { numRuns: 2_000 },
  )
  assert.equal(seen.size, 6, 'every state was met')
})

test('from wherever it is, in a world where all goes well, it ends with one channel, of the newest certificate', () => {
  fc.assert(
    fc.property(histories, (events) => {
      const { happens, look } = world()
      for (const event of events) happens(event)
      if (look().ended !== null) return
      happens({ kind: 'tick' })
      for (let round = 0; round < 3; round += 1) {
        for (const kind of ['opened', 'healthy', 'drained'] as const) {
          happens({ kind, which: 'latest' })
          happens({ kind, which: 'other' })
        }
      }
      const { state, live, newest, active } = look()
      assert.equal(state.kind, 'steady')
      assert.equal(live.length, 1)
      assert.equal(live[0]?.serial, newest.serial)
      assert.equal(live[0]?.channel, active)
    }),
    { numRuns: 1_000 },
  )
})

test('every channel that was opened is closed when the agent is stopped', () => {
  fc.assert(
    fc.property(histories, (events) => {
      const { happens, look } = world()
      for (const event of [...events, { kind: 'stopped' } as const]) happens(event)
      assert.deepEqual(look().live, [])
      assert.notEqual(look().ended, null)
    }),
  )
})
