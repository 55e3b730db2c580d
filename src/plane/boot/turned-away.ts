// Connections that a listener closed because they were beyond its bounds, and requests whose callers hung up. Both are counted. The
// former are logged with repetitions coalesced, and the latter at debug level only: otherwise anonymous callers could fill the log.

import { coalesced } from '#platform/coalesced-log.ts'
import type { ConnectionLimits } from '#platform/connections.ts'
import type { ListenerName, Metrics } from '#plane/metrics/open-metrics.ts'
import type { Core } from '#plane/core/core.ts'

export type TurnedAway = {
  limits(listener: ListenerName, most: Pick<ConnectionLimits, 'connections' | 'perCaller'>): ConnectionLimits
  /** A caller hung up before its request was complete. */
  aborted(listener: ListenerName, source: string): void
}

/** `perSource`: as configured; null: the share that a source has of what is free. */
export const openTurnedAway = (
  core: Pick<Core, 'clock' | 'timers' | 'log'>,
  metrics: Pick<Metrics, 'cut' | 'aborted'>,
  perSource: number | null,
): TurnedAway => {
  const { log } = coalesced(core)
  return {
    limits: (listener, most) => ({
      ...most,
      perSource,
      timers: core.timers,
      onCut(reason, source) {
        metrics.cut(listener, reason)
        log.warn({ code: reason, listener, from: source }, 'a connection was closed: it was beyond its bounds')
      },
    }),
    aborted(listener, source) {
      metrics.aborted(listener)
      core.log.debug({ listener, from: source }, 'a caller hung up in the middle of its request')
    },
  }
}
