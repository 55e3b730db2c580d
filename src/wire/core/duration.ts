// Durations as people write them: 30m, 24h, 3d. One number, one unit.

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

const longestMs = 100 * 366 * unitMs.d

/** Milliseconds, or null for anything that is not exactly one number and one unit. */
export const parseDuration = (text: string): number | null => {
  const [, count, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) ?? []
  if (count === undefined || unit === undefined) return null
  const ms = Number(count) * unitMs[unit as keyof typeof unitMs]
  return ms <= longestMs ? ms : null
}
