// What the plane says about the time reaches the clock, the figures and the people in one place.

import { classify } from '#domain/failure-class.ts'
import { durationWords } from '#domain/duration-words.ts'
import { isoTime } from '#platform/clock.ts'
import type { AgentParts } from './agent-deps.ts'
import { classified, trouble } from './trouble.ts'

export type TimeLearner = Pick<AgentParts, 'clock' | 'vitals' | 'board' | 'log' | 'keeper'>

/** Until an identity says otherwise. */
const usualToleranceMs = 300_000

/** `trueMs`: the time now, from a checked challenge or an answer on a verified connection. */
export const learnTime = (agent: TimeLearner, trueMs: number): void => {
  agent.clock.learn(trueMs, toleranceOf(agent))
  reviewClock(agent)
}

/** Says how the clock stands. A clock that somebody has set right since is noticed here, too. */
export const reviewClock = (agent: TimeLearner): void => {
  const { clock, vitals, board, log } = agent
  const skewMs = clock.offsetMs()
  const before = vitals.signs().clockSkewMs
  vitals.clockSkew(skewMs)
  if (skewMs === 0) {
    if (before !== 0) log.info('the clock of this machine is right again')
    return board.clear('clock')
  }
  const { class: failureClass, evidence, next } = classify({ kind: 'skew', skewMs, toleranceMs: toleranceOf(agent) })
  const nowMs = clock.nowMs()
  const text = `This machine's clock says ${isoTime(nowMs - skewMs)}; the plane's ${isoTime(nowMs)}.`
  if (before === 0) {
    const off = `${durationWords(Math.abs(skewMs))} ${skewMs > 0 ? 'behind' : 'ahead'}`
    log.warn({ code: 'clock_skew', next, off }, `${text} The agent goes by the plane's.`)
  }
  board.trouble('clock', classified(trouble('clock_skew', text, next), failureClass, evidence), null)
}

const toleranceOf = ({ keeper }: TimeLearner): number =>
  keeper.credentials().identity?.clockToleranceMs ?? usualToleranceMs
