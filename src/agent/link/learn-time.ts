// What the plane says about the time reaches the clock, the figures and the people in one place.

import { isoTime } from '#platform/clock.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import { observedTrouble } from '#agent/core/observed-trouble.ts'
import { expiredCode } from '#agent/state/expired.ts'

export type TimeLearner = Pick<AgentParts, 'clock' | 'vitals' | 'board' | 'log' | 'keeper'>

/** Until an identity says otherwise. */
const usualToleranceMs = 300_000

/** `trueMs`: the time now, from a checked challenge or an answer on a verified connection. */
export const learnTime = (agent: TimeLearner, trueMs: number): void => {
  agent.clock.learn(trueMs, toleranceOf(agent))
  reviewClock(agent)
  withdrawExpiry(agent, trueMs)
}

/** A change worth telling; less is the drift between two answers. */
const noticeableMs = 1_000

/** Says how the clock stands, where that is new: also when somebody has set it right and nobody has told us. */
export const reviewClock = (agent: TimeLearner): void => {
  const { clock, vitals, board, log } = agent
  withdrawExpiry(agent, clock.nowMs())
  const skewMs = clock.offsetMs()
  const before = vitals.signs().clockSkewMs
  if (Math.abs(skewMs - before) < noticeableMs) return
  vitals.clockSkew(skewMs)
  if (skewMs === 0) {
    log.info('the clock of this machine is right again')
    return board.clear('clock')
  }
  const nowMs = clock.nowMs()
  const text = `This machine's clock says ${isoTime(nowMs - skewMs)}, the plane's ${isoTime(nowMs)}.`
  const what = observedTrouble('clock_skew', text, { kind: 'skew', skewMs, toleranceMs: toleranceOf(agent) })
  if (before === 0) log.warn({ code: what.code, next: what.next }, `${what.text} The agent goes by the plane's.`)
  board.trouble('clock', what, null)
}

/** Whoever asks what is wrong must not be told of both in one breath: that the clock is wrong, and what it made us think. */
const withdrawExpiry = ({ board, keeper }: TimeLearner, nowMs: number): void => {
  const { identity } = keeper.credentials()
  if (identity === null || nowMs >= identity.current.notAfterMs) return
  board.withdraw(expiredCode, 'It was the clock: the certificate is good.')
}

const toleranceOf = ({ keeper }: TimeLearner): number =>
  keeper.credentials().identity?.clockToleranceMs ?? usualToleranceMs
