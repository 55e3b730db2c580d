// Limits of connections for tests that are about something else.

import type { ConnectionLimits } from '#platform/connections.ts'
import { systemTimers } from '#platform/timers.ts'
import type { TurnedAway } from '#plane/boot/turned-away.ts'

export const wideLimits: ConnectionLimits = {
  connections: 512,
  perSource: null,
  perCaller: null,
  timers: systemTimers,
  onCut: () => {},
}

export const noneTurnedAway: TurnedAway = { limits: () => wideLimits, aborted: () => {} }
