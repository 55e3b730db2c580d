import { parseDuration } from '#wire/core/duration.ts'
import { usageFailure } from './failure.ts'

export const durationOption = (option: string, text: string): number => {
  const ms = parseDuration(text)
  if (ms === null) throw usageFailure(`${option} ${text} is not a duration.`, 'Write a number and a unit: 30m, 24h, 3d')
  return ms
}
