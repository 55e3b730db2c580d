// Wall time decides validity; monotonic time measures silence. Both arrive as arguments so that tests advance them.

export type Clock = {
  /** Wall clock, milliseconds since 1970. May jump. */
  nowMs(): number
  /** Never jumps and never runs backwards; its origin means nothing. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/** RFC 3339 with milliseconds, in UTC. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()

export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms))

/** As HTTP writes it. */
export const httpDate = (ms: number): string => new Date(ms).toUTCString()

/** Null: it is none. */
export const parseHttpDate = (text: string): number | null => {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}

/** By the clock on the wall of the reader: `2026-11-17 12:03:45`. */
export const localTime = (ms: number): string => {
  const at = new Date(ms)
  const two = (part: number): string => String(part).padStart(2, '0')
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-')
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`
}

/** Milliseconds of an RFC 3339 time, or null for anything else. */
export const parseIsoTime = (text: string): number | null => {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/.test(text)) return null
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}
