// Values as people write them into documents, and as the API takes them: modes in octal, durations, sizes.

import { parseDuration } from '#wire/core/duration.ts'

/** From what was written to what the API takes. `written`: a plain scalar as it stands in the text. */
export type Reader = (value: unknown, written: string | null, isJson: boolean) => unknown

/** YAML takes 0644 for the number 644. In JSON a number is the number, as the API has it. */
export const mode: Reader = (given, written, isJson) => {
  if (typeof given === 'string') return /^0?[4-7][0-7]{2}$/.test(given) ? Number.parseInt(given, 8) : given
  if (isJson || typeof given !== 'number' || written === null) return given
  if (/^0o?[0-7]{3}$/.test(written)) return Number.parseInt(written.replace('o', ''), 8)
  return 'not octal'
}

export const milliseconds: Reader = (given) => (typeof given === 'string' ? (parseDuration(given) ?? given) : given)

const units: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }

export const bytes: Reader = (given) => {
  const [, count, unit] = typeof given === 'string' ? (/^(\d{1,9})(KiB|MiB|GiB|TiB)$/.exec(given) ?? []) : []
  return count === undefined || unit === undefined ? given : Number(count) * (units[unit] ?? 1)
}
