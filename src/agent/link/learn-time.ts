// What the plane says about the time reaches the clock, the figures and the people in one place.

import { isoTime } from '#platform/clock.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { ClockReading } from '#agent/core/judged-clock.ts'
import { observedTrouble } from '#agent/core/trouble.ts'
import { expiredCode } from '#agent/state/sound-credentials.ts'

export type TimeLearner = Pick<AgentParts, 'clock' | 'record' | 'log' | 'keeper'>

/** Until an identity says otherwise. */
const usualToleranceMs = 300_000

/**
 * `trueMs`: the time now, from a checked challenge or an answer on a verified connection. `askedAt`: the clock before that was
 * asked for. False: the clock jumped meanwhile, and the statement may be as old as the jump is long.
 */
export const learnTime = (agent: TimeLearner, trueMs: number, askedAt: ClockReading): boolean => {
  const isLearned = agent.clock.learn(trueMs, toleranceOf(agent), askedAt)
  reviewClock(agent)
  if (isLearned) withdrawExpiry(agent, trueMs)
  return isLearned
}

/** The smallest change that is logged; less is the drift between two answers. */
const noticeableMs = 1_000

/** Logs a change of the clock's offset, also when the clock was set right without an answer of the plane. */
export const reviewClock = (agent: TimeLearner): void => {
  const { clock, record, log } = agent
  withdrawExpiry(agent, clock.nowMs())
  const skewMs = clock.offsetMs()
  const before = record.now().figures.clockSkewMs
  if (Math.abs(skewMs - before) < noticeableMs) return
  record.count({ kind: 'clock-skew', ms: skewMs })
  if (skewMs === 0) {
    log.info('the clock of this machine is right again')
    return record.clear('clock')
  }
  const nowMs = clock.nowMs()
  const text = `This machine's clock says ${isoTime(nowMs - skewMs)}, the plane's ${isoTime(nowMs)}.`
  const what = observedTrouble('clock_skew', text, { kind: 'skew', skewMs, toleranceMs: toleranceOf(agent) })
  if (before === 0) log.warn({ code: what.code, next: what.next }, `${what.text} The agent goes by the plane's.`)
  record.trouble('clock', what, null)
}

/** Withdraws `cert_expired`: an explanation must not name both the wrong clock and the conclusion drawn from it. */
const withdrawExpiry = ({ record, keeper }: TimeLearner, nowMs: number): void => {
  const { identity } = keeper.credentials()
  if (identity === null || nowMs >= identity.current.notAfterMs) return
  record.withdraw(expiredCode, 'It was the clock: the certificate is good.')
}

const toleranceOf = ({ keeper }: TimeLearner): number =>
  keeper.credentials().identity?.clockToleranceMs ?? usualToleranceMs
