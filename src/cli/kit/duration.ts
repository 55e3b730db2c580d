// Durations and moments as people read them. `wire/core/duration.ts` reads what people write.

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof unitMs

/** Exact, so that what is shown can be set again: 86400000 is 24h, 86400001 is 86400001ms. */
export const formatDuration = (ms: number): string => {
  if (ms === 0) return '0s'
  const fits = (unit: Unit) => ms % unitMs[unit] === 0
  if (fits('d') && ms >= 2 * unitMs.d) return `${ms / unitMs.d}d`
  if (fits('h')) return `${ms / unitMs.h}h`
  if (fits('m')) return `${ms / unitMs.m}m`
  return fits('s') ? `${ms / unitMs.s}s` : `${ms}ms`
}

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
