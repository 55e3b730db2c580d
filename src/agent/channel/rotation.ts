// Which channels an agent has and when it changes from one to the next: a newer certificate gets a channel of its
// own, that is checked, everything goes over it from one moment to the next, and the older one ends once what it carried
// has arrived. Pure: keep-channel.ts obeys.

import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import type { RefusedUse } from '#agent/link/after-refusal.ts'
import type {
  ChannelId,
  Connecting,
  Credential,
  Disconnected,
  Ended,
  Lasting,
  Living,
  Moment,
  Opening,
  Proving,
  Rotated,
  RotationAction,
  RotationEvent,
  RotationState,
  Serving,
  Steady,
} from './rotation-state.ts'

const firstMs = 1_000
export const longestWaitMs = 30_000
const settledMs = 10_000
/** With a channel that works a slow one is no gain; without any it is better than none. */
const checkMs = { withActive: 5_000, without: 15_000 } as const
const drainMs = 30_000

export const unconnected = (newest: Credential): RotationState => ({
  kind: 'disconnected',
  newest,
  lastChannel: 0,
  failures: 0,
})

export const rotate = (state: RotationState, event: RotationEvent, at: Moment): Rotated => {
  if (state.kind === 'over') return stay(state)
  switch (event.kind) {
    case 'appeared':
      return event.newest.serial === state.newest.serial ? stay(state) : onNewest(state, event.newest)
    case 'opened':
      return onOpened(state, event.channel)
    case 'healthy':
      return onHealthy(state, event.channel, at)
    case 'ended':
      return onEnded(state, event.channel, event.because, at)
    case 'drained':
    case 'drain-deadline':
      if (state.kind !== 'draining' || state.old.channel !== event.channel) return stay(state)
      return to(settled(state, state.active), { kind: 'close', channel: event.channel })
    case 'expired':
      return isWaiting(state) && state.kind === 'proving' && state.active.credential.serial === event.serial
        ? openNewest(state)
        : stay(state)
    case 'nudged':
      return isWaiting(state) ? openNewest({ ...state, failures: 0 }) : stay(state)
    case 'tick':
      return isWaiting(state) ? openNewest(state) : stay(state)
    case 'stopped':
      return over('stopped', channelsOf(state))
  }
}

const to = (state: RotationState, ...actions: RotationAction[]): Rotated => ({ state, actions })
const stay = (state: RotationState): Rotated => to(state)
const after = (before: RotationAction[], { state, actions }: Rotated): Rotated => to(state, ...before, ...actions)

const lasting = ({ newest, lastChannel, failures }: Lasting): Lasting => ({ newest, lastChannel, failures })

const settled = (state: Lasting, active: Serving): Steady => ({ ...lasting(state), kind: 'steady', active })

const isWaiting = (state: RotationState): state is Disconnected | (Proving & { passive: null }) =>
  state.kind === 'disconnected' || (state.kind === 'proving' && state.passive === null)

const channelsOf = (state: Living): readonly ChannelId[] => {
  switch (state.kind) {
    case 'disconnected':
      return []
    case 'connecting':
      return [state.passive.channel]
    case 'steady':
      return [state.active.channel]
    case 'proving':
      return state.passive === null ? [state.active.channel] : [state.active.channel, state.passive.channel]
    case 'draining':
      return [state.active.channel, state.old.channel]
  }
}

const over = (how: 'rejoin' | 'revoked' | 'stopped', open: readonly ChannelId[] = []): Rotated =>
  to({ kind: 'over' }, ...open.map((channel) => ({ kind: 'close', channel }) as const), { kind: 'end', how })

const openNewest = (state: Disconnected | Steady | Proving): Rotated => {
  const channel = state.lastChannel + 1
  const passive: Opening = { channel, credential: state.newest, phase: 'opening' }
  const next = { ...lasting(state), lastChannel: channel, passive }
  const { kind } = state
  return to(
    kind === 'disconnected' ? { ...next, kind: 'connecting' } : { ...next, kind: 'proving', active: state.active },
    { kind: 'open', channel, serial: state.newest.serial },
  )
}

const onNewest = (state: Living, newest: Credential): Rotated => {
  const next = { ...state, newest, failures: 0 }
  switch (next.kind) {
    case 'disconnected':
      return openNewest(next)
    // The channel being opened goes on: one with the older certificate is better than none.
    case 'connecting':
      return stay(next)
    case 'steady':
      return backOn(next, next.active) ?? openNewest(next)
    case 'proving': {
      const obsolete = next.passive === null ? [] : [{ kind: 'close', channel: next.passive.channel } as const]
      return after(obsolete, backOn(next, next.active) ?? openNewest(next))
    }
    // Never more than two: what the oldest one carried is sent again over the one that has taken its place.
    case 'draining': {
      const steady = settled(next, next.active)
      return after([{ kind: 'close', channel: next.old.channel }], backOn(next, next.active) ?? openNewest(steady))
    }
  }
}

/** The newest certificate is the one the active channel has: there is nothing to prove. */
const backOn = (state: Lasting, active: Serving): Rotated | null =>
  state.newest.serial === active.credential.serial ? stay(settled(state, active)) : null

const onOpened = (state: Living, channel: ChannelId): Rotated => {
  if (state.kind !== 'connecting' && state.kind !== 'proving') return stay(state)
  const { passive } = state
  if (passive === null || passive.channel !== channel || passive.phase !== 'opening') return stay(state)
  const withinMs = state.kind === 'proving' ? checkMs.withActive : checkMs.without
  return to({ ...state, passive: { ...passive, phase: 'checking' } }, { kind: 'check', channel, withinMs })
}

const onHealthy = (state: Living, channel: ChannelId, at: Moment): Rotated => {
  if (state.kind !== 'connecting' && state.kind !== 'proving') return stay(state)
  const { passive } = state
  if (passive === null || passive.channel !== channel || passive.phase !== 'checking') return stay(state)
  const { credential } = passive
  const active: Serving = { channel, credential, sinceMs: at.monotonicMs }
  const swap = { kind: 'swap', channel, serial: credential.serial } as const
  if (state.kind === 'connecting') {
    const steady = settled(state, active)
    return after([swap], backOn(steady, active) ?? openNewest(steady))
  }
  const drain = { kind: 'drain', channel: state.active.channel, withinMs: drainMs } as const
  return to({ ...lasting(state), failures: 0, kind: 'draining', active, old: state.active }, swap, drain)
}

const onEnded = (state: Living, channel: ChannelId, because: Ended, at: Moment): Rotated => {
  switch (state.kind) {
    case 'disconnected':
      return stay(state)
    case 'connecting':
      return state.passive.channel === channel ? onFailed(state, because, at) : stay(state)
    case 'steady':
      return state.active.channel === channel ? onLost(state, because, at) : stay(state)
    case 'proving':
      if (state.passive?.channel === channel) return onFailed(state, because, at)
      if (state.active.channel !== channel) return stay(state)
      return state.passive === null
        ? onLost(state, because, at)
        : stay({ ...lasting(state), kind: 'connecting', passive: state.passive })
    case 'draining':
      if (state.old.channel === channel) return stay(settled(state, state.active))
      if (state.active.channel !== channel) return stay(state)
      // The older one is still there, and has worked: everything goes over it again until the newer one is back.
      return after(
        [{ kind: 'swap', channel: state.old.channel, serial: state.old.credential.serial }],
        tryLater({ ...lasting(state), kind: 'proving', active: state.old, passive: null }, noRefusal, at),
      )
  }
}

const noRefusal: Ended = { use: 'soon', retryAfterMs: null, former: null }

/** The only channel has ended. One that is cut as soon as it is open is no success: a plane in trouble would be asked in a circle. */
const onLost = (state: Steady | Proving, because: Ended, at: Moment): Rotated => {
  // Said while it ended; with a newer certificate it may be otherwise.
  if (because.use === 'rejoin' && state.newest.serial === state.active.credential.serial) return over('rejoin')
  const held = at.monotonicMs - state.active.sinceMs > settledMs
  return tryLater({ ...lasting(state), failures: held ? 0 : state.failures, kind: 'disconnected' }, noRefusal, at)
}

/** What was being opened came to nothing. */
const onFailed = (state: Connecting | Proving, because: Ended, at: Moment): Rotated => {
  const waiting: Disconnected | Proving =
    state.kind === 'connecting' ? { ...lasting(state), kind: 'disconnected' } : { ...state, passive: null }
  // Another certificate has appeared meanwhile: what was said of this one says nothing about that.
  if (state.passive?.credential.serial !== state.newest.serial) return openNewest(waiting)
  const isFinal = because.use === 'unknown-certificate' || because.use === 'rejoin'
  const { former } = because
  if (isFinal && former !== null && former.notAfterMs > at.nowMs) {
    const back = { ...waiting, newest: former }
    return after(
      [{ kind: 'give-up', serial: state.newest.serial }],
      (back.kind === 'proving' ? backOn(back, back.active) : null) ?? tryLater(back, noRefusal, at),
    )
  }
  // While a channel works nothing is over: should the node be thrown out, the plane cuts that one too.
  if (state.kind === 'proving') return tryLater(waiting, because, at)
  if (isFinal) return over('rejoin')
  return because.use === 'revoked' ? over('revoked') : tryLater(waiting, because, at)
}

const tryLater = (state: Disconnected | Proving, because: Ended, at: Moment): Rotated => {
  const lifeMs = (state.kind === 'proving' ? state.active.credential : state.newest).notAfterMs - at.nowMs
  return to(
    { ...state, failures: state.failures + 1 },
    { kind: 'wait', ms: waitMs(state.failures, because, lifeMs, at) },
  )
}

/** Shorter than the rest of a valid certificate's lifetime. The retry time of the plane may be longer than ours. */
const waitMs = (failures: number, { use, retryAfterMs }: Ended, lifeMs: number, { unit }: Moment): number => {
  const ownMs = isForOperators(use)
    ? Math.round((longestWaitMs * (1 + unit)) / 2)
    : fullJitterMs(failures, firstMs, longestWaitMs, unit)
  const wantedMs = notBeforeMs(ownMs, retryAfterMs, unit)
  return lifeMs > 0 ? Math.min(wantedMs, Math.max(firstMs, Math.round(lifeMs / 2))) : wantedMs
}

/** Only an operator can change it, so retries are slow. */
const isForOperators = (use: RefusedUse): boolean => use === 'slow' || use === 'revoked' || use === 'rejoin'
