// A foreign program, run without a shell in its own process group, and processes that outlived their parent. The output goes
// to a file, which outlives the parent too: a pipe would kill the program with its reader.

import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { errno } from './files.ts'
import { whyNotStarted } from './not-started.ts'
import { markOf, stillRuns, type ProcessMark } from './process-mark.ts'

/** How a program ended. */
export type Ending = {
  /** False: it could not be started. */
  readonly started: boolean
  /** Null: by a signal, or not known. */
  readonly code: number | null
  readonly words: string
}

export type ServiceProcess = {
  /** Null when it could not be started, or was gone before it could be looked at. */
  readonly mark: ProcessMark | null
  readonly ended: Promise<Ending>
  running(): boolean
  /** SIGTERM to the whole group, SIGKILL to what is still there after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

export type ServiceCommand = {
  readonly command: readonly string[]
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  readonly workingDirectory: string
  readonly logFile: string
}

/** What any program needs of the environment of this one, and nothing that could be a secret. */
export const plainEnvironment = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: process.env['HOME'] ?? '/',
  LANG: process.env['LANG'] ?? 'C.UTF-8',
})

/** Throws when the log cannot be opened; a program that cannot be started is one that ended. */
export const startServiceProcess = (service: ServiceCommand): ServiceProcess => {
  const { command, env, workingDirectory, logFile } = service
  const [program = '', ...args] = command
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = fs.constants
  const log = fs.openSync(logFile, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
  let child
  try {
    child = spawn(program, args, {
      cwd: workingDirectory,
      env: { ...env },
      detached: true,
      stdio: ['ignore', log, log],
    })
  } finally {
    fs.closeSync(log)
  }
  const { pid } = child
  let running = pid !== undefined
  const ended = new Promise<Ending>((resolve) => {
    const end = (ending: Ending): void => {
      running = false
      // What it has started and not ended belongs to a life that is over.
      if (pid !== undefined) signalGroup(pid, 'SIGKILL')
      resolve(ending)
    }
    child.once('error', (error) => {
      const why = whyNotStarted(error, program, workingDirectory)
      end({ started: false, code: null, words: `could not be started: ${why}` })
    })
    child.once('exit', (code, signal) =>
      end({ started: true, code, words: code === null ? `ended by ${signal}` : `ended with exit code ${code}` }),
    )
  })
  return {
    mark: pid === undefined ? null : markOf(pid),
    ended,
    running: () => running,
    stop: (graceMs) => stopGroup(pid, ended, graceMs),
  }
}

const lookEveryMs = 250

/** A process that an earlier agent started; polled, since only a parent is notified of its end. */
export const adoptServiceProcess = (mark: ProcessMark): ServiceProcess => {
  const ended = new Promise<Ending>((resolve) => {
    const timer = setInterval(() => {
      if (stillRuns(mark)) return
      clearInterval(timer)
      signalGroup(mark.pid, 'SIGKILL')
      resolve({ started: true, code: null, words: 'ended' })
    }, lookEveryMs)
    timer.unref()
  })
  return { mark, ended, running: () => stillRuns(mark), stop: (graceMs) => stopGroup(mark.pid, ended, graceMs) }
}

const stopGroup = async (pid: number | undefined, ended: Promise<unknown>, graceMs: number): Promise<void> => {
  if (pid !== undefined) signalGroup(pid, 'SIGTERM')
  const killer = setTimeout(() => pid !== undefined && signalGroup(pid, 'SIGKILL'), graceMs)
  await ended
  clearTimeout(killer)
}

const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (errno(error) !== 'ESRCH' && errno(error) !== 'EPERM') throw error
  }
}

/** Those of this user with that line in the environment they were started with, and their process groups. */
export const processesWith = (line: string): readonly { readonly mark: ProcessMark; readonly group: number }[] =>
  numbersIn('/proc').flatMap((pid) => {
    try {
      if (!`\0${fs.readFileSync(`/proc/${pid}/environ`, 'utf8')}`.includes(`\0${line}\0`)) return []
      const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
      const group = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2])
      return [{ mark: markOf(pid), group }]
    } catch {
      // Gone, or of another user.
      return []
    }
  })

const numbersIn = (folder: string): readonly number[] => {
  try {
    return fs.readdirSync(folder).flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  } catch {
    return []
  }
}

/** A single process, by what it is and not by its number alone. */
export const killProcess = (mark: ProcessMark): void => {
  try {
    if (stillRuns(mark)) process.kill(mark.pid, 'SIGKILL')
  } catch (error) {
    if (errno(error) !== 'ESRCH' && errno(error) !== 'EPERM') throw error
  }
}

/**
 * Truncates a log that has grown too long; its writer goes on at the new end. The last `longest` bytes are kept in FILE.1, and
 * no more: a program that writes faster than files are copied must not hold up the agent. A log that cannot be truncated is
 * left as it is, so that services can be stopped on a full disk.
 */
export const trimLog = (logFile: string, longest: number, keep: boolean): void => {
  try {
    const length = fs.lstatSync(logFile, { throwIfNoEntry: false })?.size ?? 0
    if (length <= longest) return
    if (keep) {
      const end = endOf(logFile, length - longest, longest)
      fs.rmSync(`${logFile}.1`, { force: true })
      fs.writeFileSync(`${logFile}.1`, end, { mode: 0o600, flag: 'wx' })
    }
    fs.truncateSync(logFile, 0)
  } catch (error) {
    // Without the room to keep it, it is cut all the same.
    if (keep) trimLog(logFile, longest, false)
    else if (!['ENOENT', 'EROFS', 'EACCES', 'EPERM', 'EIO'].includes(errno(error) ?? '')) throw error
  }
}

const endOf = (file: string, from: number, most: number): Uint8Array => {
  const bytes = Buffer.alloc(most)
  const fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW)
  try {
    return bytes.subarray(0, fs.readSync(fd, bytes, 0, most, from))
  } finally {
    fs.closeSync(fd)
  }
}

/** The end of a log, of at most that many bytes; empty when it cannot be read. `from`: what lies before is of an earlier program. */
export const logEnd = (logFile: string, from: number, most: number): string => {
  try {
    const length = fs.lstatSync(logFile).size
    // It was trimmed meanwhile.
    const first = from > length ? 0 : from
    return Buffer.from(endOf(logFile, Math.max(first, length - most), most)).toString('utf8')
  } catch {
    return ''
  }
}

export const logLength = (logFile: string): number => fs.lstatSync(logFile, { throwIfNoEntry: false })?.size ?? 0
