// The states of the agent's channels, their events and their actions. rotation.ts decides.
//
//   disconnected  no channel; the next try is a wait away
//   connecting    no channel yet; one is being opened and checked
//   steady        one channel, which everything goes over
//   proving       one that everything goes over, and a newer certificate whose channel is being opened and checked, or
//                 waits to be tried again
//   draining      everything goes over the newer channel; the older one stays until what it carried has arrived
//   over          the plane no longer accepts the identity, or the agent was stopped
//
// There is one wait at a time: an action `wait` replaces the previous wait.

import type { RefusedUse } from '#agent/link/after-refusal.ts'

export type ChannelId = number

/** A certificate and its key, by what the rotation has to know of them. */
export type Credential = { readonly serial: string; readonly notAfterMs: number }

/** What everything goes over, or did until the swap. */
export type Serving = { readonly channel: ChannelId; readonly credential: Credential; readonly sinceMs: number }

export type Opening = {
  readonly channel: ChannelId
  readonly credential: Credential
  readonly phase: 'opening' | 'checking'
}

export type Lasting = {
  /** The newest certificate, which every channel is opened with. */
  readonly newest: Credential
  readonly lastChannel: ChannelId
  /** In a row; one that held only for a moment is no success. */
  readonly failures: number
}

export type Disconnected = Lasting & { readonly kind: 'disconnected' }
export type Connecting = Lasting & { readonly kind: 'connecting'; readonly passive: Opening }
export type Steady = Lasting & { readonly kind: 'steady'; readonly active: Serving }
export type Proving = Lasting & { readonly kind: 'proving'; readonly active: Serving; readonly passive: Opening | null }
export type Draining = Lasting & { readonly kind: 'draining'; readonly active: Serving; readonly old: Serving }
export type Living = Disconnected | Connecting | Steady | Proving | Draining

export type RotationState = Living | { readonly kind: 'over' }

export type RotationEvent =
  /** There is another certificate than before: a renewal, or an identity from another source. */
  | { readonly kind: 'appeared'; readonly newest: Credential }
  /** The plane has said hello. */
  | { readonly kind: 'opened'; readonly channel: ChannelId }
  /** It has answered a ping. */
  | { readonly kind: 'healthy'; readonly channel: ChannelId }
  /** It is gone, whether it ever opened or not. */
  | { readonly kind: 'ended'; readonly channel: ChannelId; readonly because: Ended }
  /** What the older channel carried has arrived. */
  | { readonly kind: 'drained'; readonly channel: ChannelId }
  | { readonly kind: 'drain-deadline'; readonly channel: ChannelId }
  | { readonly kind: 'expired'; readonly serial: string }
  /** An operator or a signal asks for an attempt now. */
  | { readonly kind: 'nudged' }
  /** The wait is over. */
  | { readonly kind: 'tick' }
  | { readonly kind: 'stopped' }

export type Ended = {
  /** What the plane's refusal means; `soon` for everything that is none. */
  readonly use: RefusedUse
  /** The retry time that the plane named. */
  readonly retryAfterMs: number | null
  /** The certificate before the newest, while that one has never worked; null when there is none to go back to. */
  readonly former: Credential | null
}

export type RotationAction =
  | { readonly kind: 'open'; readonly channel: ChannelId; readonly serial: string }
  /** A ping that is to be answered in time; the channel is cut otherwise. */
  | { readonly kind: 'check'; readonly channel: ChannelId; readonly withinMs: number }
  /** Everything goes over this one from now on. */
  | { readonly kind: 'swap'; readonly channel: ChannelId; readonly serial: string }
  | { readonly kind: 'drain'; readonly channel: ChannelId; readonly withinMs: number }
  | { readonly kind: 'close'; readonly channel: ChannelId }
  | { readonly kind: 'wait'; readonly ms: number }
  /** The plane does not take this certificate and never has: back to the one before. */
  | { readonly kind: 'give-up'; readonly serial: string }
  | { readonly kind: 'end'; readonly how: 'rejoin' | 'revoked' | 'stopped' }

/** When something happens: judged wall clock, monotonic clock, and a random number in [0, 1). */
export type Moment = { readonly nowMs: number; readonly monotonicMs: number; readonly unit: number }

export type Rotated = { readonly state: RotationState; readonly actions: readonly RotationAction[] }
