import { parseIsoTime } from '#platform/clock.ts'
import { formatAgo } from './duration.ts'

/** `5m ago (2030-01-01T12:00:00.000Z)` */
export const moment = (time: string, nowMs: number): string => {
  const ms = parseIsoTime(time)
  return ms === null ? time : `${formatAgo(ms, nowMs)} (${time})`
}
