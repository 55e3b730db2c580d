// What is said of a row that no plane wrote: once in a while for each, since it is met again at every look.

import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { boundedText, forgedWords, type RowKind } from '#domain/core/change.ts'
import { raiseAlert } from './reconcile-alerts.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'

const againAfterMs = 60_000
const mostKnown = 1000

/** `core`: asked when there is one to report, since the store that meets such a row is a part of it. */
export const openForgedRows = (log: Log, clock: Clock, core: () => FlowCore) => {
  const reportedMs = new Map<string, number>()
  return (kind: RowKind, key: string): void => {
    const subject = boundedText(`${kind} ${key}`, 100)
    const nowMs = clock.monotonicMs()
    if (nowMs - (reportedMs.get(subject) ?? -Infinity) < againAfterMs) return
    if (reportedMs.size >= mostKnown) reportedMs.clear()
    reportedMs.set(subject, nowMs)
    log.error(
      { row: kind, key: subject },
      'a row that no plane of this domain wrote is in the store: nothing is done for it',
    )
    const reason = `${subject}: ${forgedWords}: nothing is done for it. Find out who writes to the database`
    raiseAlert(core(), wantedAlert('rows_differ', subject, reason)).catch((error: unknown) =>
      log.warn({ err: error }, 'a forged row raised no alert'),
    )
  }
}
