// A wall clock that jumped: it was set, or the machine slept. Only the plane can tell which, and until it has, the agent renews
// nothing because of the jump.

import { askChallenge, isUnknownAddress, type AnonymousAgent } from '#agent/link/anonymous-call.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { runtimeTarget } from '#agent/recovery/way-back.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { jumpMs, type ClockReading } from '#agent/core/judged-clock.ts'

export type ClockCheck = {
  /** To be called often: what it notices is a jump between two looks. */
  look(toleranceMs: number): void
  /** Null: the clock is accounted for, or no plane could vouch for it anyway. */
  settle(identity: Identity): Promise<PlaneFailure | null>
}

/** Until the plane has answered for the first time, the clock is in doubt. */
export const openClockCheck = (agent: AnonymousAgent): ClockCheck => {
  const read = (): ClockReading => ({ wallMs: agent.clock.nowMs(), monotonicMs: agent.clock.monotonicMs() })
  let reading = read()
  let inDoubt = agent.record.now().figures.lastExchangeMs === null
  return {
    look: (toleranceMs) => {
      const now = read()
      inDoubt ||= Math.abs(jumpMs(reading, now)) > toleranceMs
      reading = now
    },
    settle: async (identity) => {
      const target = runtimeTarget(identity)
      const asked = inDoubt && target.pinned !== null ? await askChallenge(agent, target, null) : null
      if (asked !== null && asked.kind !== 'challenge' && !isUnknownAddress(asked)) return asked
      // The clock has jumped once more while the plane answered.
      inDoubt = asked?.kind === 'challenge' && asked.timeMs === null
      // What was just learned moves the clock the agent goes by, and that is no jump.
      reading = read()
      return null
    },
  }
}
