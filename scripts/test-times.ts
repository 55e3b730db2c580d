// How long each test file took, and how much of that the processors were busy: what takes longest is started first, and what
// does little but wait has lanes of its own. `npm test -- --record` writes down what the machine at hand says.

import * as fs from 'node:fs'
import * as path from 'node:path'

/** Of one run of a file, in seconds; `cpu`: of all its processes together. */
export type Times = { readonly seconds: number; readonly cpu: number }

/** By the name that is reported: the file, and behind it `[postgres]` where it ran on that. */
export type KnownTimes = Readonly<Record<string, Times>>

/** One that is not written down is short, or new. */
const unknownTimes: Times = { seconds: 1, cpu: 1 }
/** Below this it does not matter when a file is started. */
const worthKnowingSeconds = 2
/** So little of its time is work that it takes nothing from those that work. */
const waitingShare = 0.2

const place = (root: string): string => path.join(root, 'scripts', 'test-times.json')

export const knownTimes = (root: string): KnownTimes => JSON.parse(fs.readFileSync(place(root), 'utf8')) as KnownTimes

export const writeTimes = (root: string, times: KnownTimes): void => {
  const lines = Object.entries(times)
    .filter(([, { seconds }]) => seconds >= worthKnowingSeconds)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(
      ([name, { seconds, cpu }]) =>
        `  ${JSON.stringify(name)}: { "seconds": ${Math.round(seconds)}, "cpu": ${Math.round(cpu)} }`,
    )
  fs.writeFileSync(place(root), `{\n${lines.join(',\n')}\n}\n`)
}

/** Of a file: what it does most. */
type FileKind = 'working' | 'waiting'
/** Of a lane: what it takes first, or all it takes. */
export type LaneKind = FileKind | 'only waiting'

export type Queue<Job> = {
  /** What a lane does next: the longest of its kind, or of the other once there is none; null: nothing is left for it now. */
  next(lane: LaneKind): Job | null
  isEmpty(): boolean
}

/** `isHeld`: it cannot begin yet, and is left for later. */
export const openQueue = <Job>(
  jobs: readonly Job[],
  nameOf: (job: Job) => string,
  known: KnownTimes,
  isHeld: (job: Job) => boolean = () => false,
): Queue<Job> => {
  const timesOf = (job: Job): Times => known[nameOf(job)] ?? unknownTimes
  const left = jobs.toSorted((one, other) => timesOf(other).seconds - timesOf(one).seconds)
  const kindOf = (job: Job): FileKind => {
    const { seconds, cpu } = timesOf(job)
    return cpu < waitingShare * seconds ? 'waiting' : 'working'
  }
  return {
    next(lane) {
      const first = lane === 'working' ? 'working' : 'waiting'
      const ofItsKind = left.findIndex((job) => kindOf(job) === first && !isHeld(job))
      if (ofItsKind === -1 && lane === 'only waiting') return null
      const at = ofItsKind === -1 ? left.findIndex((job) => !isHeld(job)) : ofItsKind
      return at === -1 ? null : (left.splice(at, 1)[0] ?? null)
    },
    isEmpty: () => left.length === 0,
  }
}
