// The folder of a control group: its files, the processes in it and in the groups below, and its end.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno } from './files.ts'
import { sleep, systemTimers } from './timers.ts'

/** Empty where it cannot be read. */
export const textIn = (file: string): string => {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

export const write = (file: string, text: string): void => fs.writeFileSync(file, text, { flag: 'r+' })

/** A kernel without that file has nothing to limit there. */
export const writeIfAny = (file: string, text: string): void => {
  try {
    write(file, text)
  } catch {
    // As above.
  }
}

/** Returns who was in it. */
export const signalAll = (folder: string, signal: NodeJS.Signals): readonly number[] => {
  const pids = groupsIn(folder).flatMap((group) =>
    textIn(path.join(group, 'cgroup.procs'))
      .split('\n')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid),
  )
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      if (errno(error) !== 'ESRCH' && errno(error) !== 'EPERM') throw error
    }
  }
  return pids
}

const mostRounds = 200
const roundMs = 25

/** SIGKILL to all that is in them and below until nothing is left, and they are removed. False: something does not end. */
export const endGroup = async (folders: readonly string[]): Promise<boolean> => {
  for (let round = 0; round < mostRounds; round++) {
    const left = folders.flatMap((folder) => {
      // Nothing in it can start another from here on.
      writeIfAny(path.join(folder, 'pids.max'), '0')
      // All at once, with what is below and with what is being started just then; since Linux 5.14, in version 2.
      writeIfAny(path.join(folder, 'cgroup.kill'), '1')
      return signalAll(folder, 'SIGKILL')
    })
    if (left.length === 0 && folders.every(removeGroup)) return true
    await sleep(systemTimers, roundMs)
  }
  return false
}

/** With those below. False: there is still something in one of them. */
export const removeGroup = (folder: string): boolean => groupsIn(folder).every(removeFolder)

const removeFolder = (folder: string): boolean => {
  try {
    fs.rmdirSync(folder)
    return true
  } catch (error) {
    return errno(error) === 'ENOENT'
  }
}

/** It, and before it those below, which a program of root's may have made. */
const groupsIn = (folder: string): readonly string[] => {
  const below = foldersIn(folder).flatMap((name) => groupsIn(path.join(folder, name)))
  return [...below, folder]
}

const foldersIn = (folder: string): readonly string[] => {
  try {
    return fs.readdirSync(folder, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? [one.name] : []))
  } catch {
    return []
  }
}
