// What processes cost, by the kernel's own account.

import * as fs from 'node:fs'
import { descendantsOf } from '../test/process/process-tree.ts'

const clockTicksPerSecond = 100

/** Milliseconds of CPU so far, user and system, all threads, of a process and those it has started. */
export const cpuMs = (pid: number): number =>
  descendantsOf([pid]).reduce((sum, one) => {
    // With the children that have ended: of those, only their parent knows.
    const [user = 0, system = 0, childUser = 0, childSystem = 0] = statOf(one).slice(11, 15).map(Number)
    return sum + ((user + system + childUser + childSystem) * 1000) / clockTicksPerSecond
  }, 0)

/** Milliseconds of CPU so far of the threads that a process has now, to the nanosecond. */
export const ownCpuMs = (pid: number): number =>
  fs
    .readdirSync(`/proc/${pid}/task`)
    .map((thread) => Number(fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6)
    .reduce((sum, ms) => sum + ms, 0)

/**
 * A server has work of its start to do when it is ready already: a plane verifies its journal whenever it has nothing else to do, from
 * two seconds after its start on. It would be counted as the cost of whatever is called meanwhile.
 */
export const untilIdle = async (cpuMs: () => number): Promise<void> => {
  const [lookMs, mostLooks, busyMs] = [3000, 600, 300]
  for (let look = 0; look < mostLooks; look++) {
    const before = cpuMs()
    await new Promise((resolve) => setTimeout(resolve, lookMs))
    if (look > 0 && cpuMs() - before < busyMs) return
  }
  throw new Error('the server is busy although nothing is asked of it')
}

/** Of the whole machine, by all processes. */
export const machineCpuMs = (): number => {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = (
    /^cpu +(.*)$/m.exec(fs.readFileSync('/proc/stat', 'utf8'))?.[1] ?? ''
  )
    .split(' ')
    .map(Number)
  return ((user + nice + system + irq + softIrq) * 1000) / clockTicksPerSecond
}

const statOf = (pid: number): string[] => {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(') ') + 2).split(' ')
  } catch {
    // It has ended meanwhile.
    return []
  }
}
