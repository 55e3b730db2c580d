// Whether the processors of this machine have room for more work, whoever the rest of it is done for.

import * as os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

const sampleMs = 1000
/** Of all processors together. Less is what a machine has between two tasks. */
const idleShare = 0.1

type Ticks = { readonly idle: number; readonly all: number }

const ticksNow = (): Ticks => {
  const times = os.cpus().map((processor) => processor.times)
  const sum = (of: (one: (typeof times)[number]) => number): number => times.reduce((total, one) => total + of(one), 0)
  return { idle: sum(({ idle }) => idle), all: sum(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq) }
}

export const isIdleBetween = (before: Ticks, now: Ticks): boolean =>
  now.idle - before.idle > idleShare * (now.all - before.all)

/** True as soon as one is; false when `isOver` says that it no longer matters. */
export const processorIsIdle = async (isOver: () => boolean): Promise<boolean> => {
  while (!isOver()) {
    const before = ticksNow()
    await sleep(sampleMs)
    if (isIdleBetween(before, ticksNow())) return true
  }
  return false
}

/**
 * Processes that wait for a processor, for each of them. A run alone on the machine stays below it. Beside the work of others
 * everything that runs gets so little that a plane misses its lease and an agent its renewal, as they would anywhere.
 */
const mostWaiting = 5

/** True as soon as there are no more than that; false as above. */
export const processorsAreShared = async (isOver: () => boolean): Promise<boolean> => {
  while (!isOver()) {
    if ((os.loadavg()[0] ?? 0) <= mostWaiting * os.availableParallelism()) return true
    await sleep(sampleMs)
  }
  return false
}
