// Whether a processor of this machine has nothing to do, whoever the others work for.

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
