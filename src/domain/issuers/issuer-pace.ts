// How many requests wait for an outside issuer. Admission follows the rate at which it has answered: a caller that would wait longer than is
// useful is told when to come back instead, before anything is committed for it.

export type Pace = {
  /** Requests that are at the issuer. */
  readonly asking: number
  /** Requests that wait for a slot. */
  readonly waiting: number
  /** Answers a second, measured while slots were taken. */
  readonly perSecond: number
}

export const slots = 16
/** Nobody waits longer for a slot, if the rate holds. Callers have time limits of their own, and other profiles need the memory. */
export const longestWaitMs = 10_000
/**
 * However fast it was: one that falls silent keeps all of them for that long, and they take places of the admission that other profiles
 * share.
 */
const mostWaiting = 128
/** Assumed of an issuer that has not been busy yet. */
const firstGuessPerSecond = 20

export const startingPace: Pace = { asking: 0, waiting: 0, perSecond: firstGuessPerSecond }

export type PaceVerdict =
  | { readonly kind: 'ask' }
  | { readonly kind: 'wait' }
  /** `apartMs`: how far apart the times are that several are told. */
  | { readonly kind: 'come-back'; readonly afterMs: number; readonly apartMs: number }

export const admission = ({ asking, waiting, perSecond }: Pace): PaceVerdict => {
  if (asking < slots && waiting === 0) return { kind: 'ask' }
  const apartMs = 1000 / perSecond
  const waitMs = (waiting + 1) * apartMs
  return waitMs <= longestWaitMs && waiting < mostWaiting
    ? { kind: 'wait' }
    : { kind: 'come-back', afterMs: Math.ceil(waitMs), apartMs }
}

/** A rate of nothing would let nobody in again: its measure needs callers. */
const slowestPerSecond = 0.2
const smoothing = 0.3

/** `answered` requests in `forMs`, during all of which every slot was taken: else the rate is that of the callers. */
export const measured = (pace: Pace, answered: number, forMs: number): Pace => {
  if (forMs <= 0) return pace
  const seen = (answered * 1000) / forMs
  return { ...pace, perSecond: Math.max(slowestPerSecond, pace.perSecond + smoothing * (seen - pace.perSecond)) }
}
