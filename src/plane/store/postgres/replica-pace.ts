// How often, and how long. Tests that wait for a lease to end use shorter ones.

import { leaseMs, mostBehindMs } from '#plane/store/contract/replicas.ts'

export type ReplicaPace = {
  readonly leaseMs: number
  readonly mostBehindMs: number
  readonly renewEveryMs: number
  /** A connection that is silent for longer is given up. */
  readonly answerWithinMs: number
  /** How soon a change of standing is reported. */
  readonly judgeEveryMs: number
  /** Hints of one replica are at least so far apart. */
  readonly hintEveryMs: number
  /** And hints that no caller waits for: every hint makes every other replica look. */
  readonly routineHintEveryMs: number
  readonly releaseEveryMs: number
  /** How long a request for a hold waits for a row that another transaction is writing. */
  readonly holdWithinMs: number
  readonly forgetEveryMs: number
  /** How long a lease has to be over before it is removed. */
  readonly forgetAfterMs: number
}

export const usualPace: ReplicaPace = {
  leaseMs,
  mostBehindMs,
  renewEveryMs: 1000,
  answerWithinMs: 2500,
  judgeEveryMs: 250,
  hintEveryMs: 20,
  routineHintEveryMs: 100,
  releaseEveryMs: 200,
  holdWithinMs: 8000,
  forgetEveryMs: 30_000,
  forgetAfterMs: 60_000,
}
