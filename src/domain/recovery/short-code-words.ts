// A short code in sentences.

import { durationWords } from '#domain/core/in-words.ts'
import { nextSteps } from './failure-class.ts'
import type { DecodedCode, Range, ShortClass } from './short-code.ts'

/** Pure. What is known, and what to do next; `nodeId` as far as it is known. */
export const codeSentences = (facts: DecodedCode): readonly string[] => [
  problem(facts),
  certificate(facts.certificateLeftMs),
  ...clock(facts.clockBehindMs),
  ...disk(facts.freeBytes),
  silence(facts.silentMs),
]

export const nextStepOf = (what: ShortClass | null): string => {
  switch (what) {
    case null:
      return 'See what it says of itself: muster agent explain, on the machine'
    case 'node_observability_disk_pressure':
      return 'Make room on the disk of the agent'
    default:
      return nextSteps[what]
  }
}

const problem = ({ class: what, place, cause, attempts }: DecodedCode): string => {
  const because = cause === null ? '' : cause === 'other' ? ', for a reason the code has no room for' : `: ${cause}`
  const tried = attempts.to <= 1 ? '' : `, tried ${between(attempts, (count) => String(count), 1)} times`
  return what === null
    ? `Nothing of the known kinds was wrong at ${place}${because}${tried}.`
    : `${what} at ${place}${because}${tried}.`
}

const certificate = (left: Range | null): string => {
  if (left === null) return 'It has no certificate.'
  return left.from >= 0
    ? `Its certificate was valid for ${between(left, durationWords)} more.`
    : `Its certificate had expired ${between(mirrored(left), durationWords)} before.`
}

const clock = (behind: Range | null): string[] => {
  if (behind === null) return ['Whether its clock was right is not known.']
  if (behind.from < 0 && behind.to > 0) return []
  return behind.from >= 0
    ? [`Its clock was ${between(behind, durationWords)} behind.`]
    : [`Its clock was ${between(mirrored(behind), durationWords)} ahead.`]
}

const disk = (free: Range | null): string[] => (free === null ? [] : [`Its disk had ${between(free, bytes)} free.`])

const silence = (silent: Range | null): string =>
  silent === null
    ? 'It had not spoken with the plane, as far as it knew.'
    : `It had last spoken with the plane ${between(silent, durationWords)} before.`

const mirrored = ({ from, to }: Range): Range => ({ from: Math.abs(to), to: Math.abs(from) })

/** `step`: the distance between two neighbours, where there is one. */
const between = ({ from, to }: Range, say: (value: number) => string, step = 0): string => {
  if (from <= 0 || from === -Infinity) return `less than ${say(to)}`
  if (to === Infinity) return `${say(from)} or more`
  return to - step === from ? say(from) : `${say(from)} to ${say(to - step)}`
}

const units = ['bytes', 'KiB', 'MiB', 'GiB'] as const

const bytes = (count: number): string => {
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10))
  return `${Math.floor(count / 1024 ** power)} ${units[power]}`
}
