// Spans and moments as a terminal shows them, rounded. Exact durations: wire/core/duration.ts.

import { parseIsoTime } from '#platform/clock.ts'

/** Rounded down to the two largest units that matter: 23h 59m, 3d 4h, 42s. */
export const formatSpan = (ms: number): string => {
  const seconds = Math.floor(ms / 1000)
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  if (first === -1) return '0s'
  return parts
    .slice(first, first + 2)
    .filter(([count, unit], at) => at === 0 || (count > 0 && unit !== 's'))
    .map(([count, unit]) => `${count}${unit}`)
    .join(' ')
}

/** One unit is enough for the past: 3m ago. Clocks differ a little, so the near future is now too. */
export const formatAgo = (thenMs: number, nowMs: number): string => {
  const ms = nowMs - thenMs
  if (ms < 5000) return ms < -60_000 ? `in ${formatSpan(-ms)}` : 'now'
  return `${formatSpan(ms).split(' ')[0]} ago`
}

/** `5m ago (2030-01-01T12:00:00.000Z)` */
export const moment = (time: string, nowMs: number): string => {
  const ms = parseIsoTime(time)
  return ms === null ? time : `${formatAgo(ms, nowMs)} (${time})`
}
