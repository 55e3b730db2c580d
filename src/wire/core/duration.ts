// Durations as people write them: 30m, 24h, 3d. One number, one unit; exact in both directions.

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof unitMs

const longestMs = 100 * 366 * unitMs.d

/** Milliseconds, or null for anything that is not exactly one number and one unit. */
export const parseDuration = (text: string): number | null => {
  const [, count, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) ?? []
  if (count === undefined || unit === undefined) return null
  const ms = Number(count) * unitMs[unit as Unit]
  return ms <= longestMs ? ms : null
}

/** Exact, so that what is shown can be set again: 86400000 is 24h, 86400001 is 86400001ms. */
export const formatDuration = (ms: number): string => {
  if (ms === 0) return '0s'
  const fits = (unit: Unit) => ms % unitMs[unit] === 0
  if (fits('d') && ms >= 2 * unitMs.d) return `${ms / unitMs.d}d`
  if (fits('h')) return `${ms / unitMs.h}h`
  if (fits('m')) return `${ms / unitMs.m}m`
  return fits('s') ? `${ms / unitMs.s}s` : `${ms}ms`
}
