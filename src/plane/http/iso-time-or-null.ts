import { isoTime } from '#platform/clock.ts'

export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms))
