// A wall clock that has moved by itself: somebody has set it, or the machine has slept. Which of the two only the plane can
// say, and until it has, nothing is renewed because of it.

import { askChallenge, isUnknownAddress, type KnockingAgent } from '#agent/link/knock.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { runtimeDoor } from '#agent/recovery/way-back.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { jumpMs, type ClockReading } from '#agent/state/should-renew.ts'

export type ClockCheck = {
  /** To be called often: what it notices is a jump between two looks. */
  look(toleranceMs: number): void
  /** Null: the clock is accounted for, or nobody could vouch for it anyway. */
  settle(identity: Identity): Promise<PlaneFailure | null>
}

/** Before the plane has been heard at all, the clock is in doubt from the start. */
export const openClockCheck = (agent: KnockingAgent): ClockCheck => {
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
      const door = runtimeDoor(identity)
      const asked = inDoubt && door.pinned !== null ? await askChallenge(agent, door, null) : null
      if (asked !== null && asked.kind !== 'challenge' && !isUnknownAddress(asked)) return asked
      inDoubt = false
      // What was just learned moves the clock the agent goes by, and that is no jump.
      reading = read()
      return null
    },
  }
}
