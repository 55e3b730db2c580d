// Which process wrote this? A process id alone is reused, after a reboot by something else entirely.

import * as fs from 'node:fs'

export type ProcessMark = {
  readonly pid: number
  /** The boot and the moment in it when the process began; null where the system does not say. */
  readonly birth: string | null
}

export const ownMark = (): ProcessMark => markOf(process.pid)

export const markOf = (pid: number): ProcessMark => ({ pid, birth: birthOf(pid) })

export const stillRuns = (mark: ProcessMark): boolean => {
  try {
    process.kill(mark.pid, 0)
  } catch (error) {
    // EPERM: it exists, and belongs to another user.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false
  }
  return (mark.birth === null || birthOf(mark.pid) === mark.birth) && !isZombie(mark.pid)
}

/** It has ended, and its parent has not reaped it yet; in some containers no process ever does. */
const isZombie = (pid: number): boolean => {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2) === 'Z'
  } catch {
    return false
  }
}

/**
 * Whether the process belongs to the owner of this file: root, who may signal every process, must not do so because a file of
 * another user names one.
 */
export const isOfWriter = (pid: number, file: string): boolean => {
  try {
    const [, uid] = /^Uid:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return uid === undefined || Number(uid) === fs.statSync(file).uid
  } catch {
    return true
  }
}

const birthOf = (pid: number): string | null => {
  try {
    const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The command's name, in brackets, may hold spaces; the start time is the 20th field after it.
    const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
    return started === undefined ? null : `${boot}/${started}`
  } catch {
    return null
  }
}
