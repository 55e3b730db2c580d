// A program of the host, run without a shell in a process group of its own, perhaps as another user. What it says is read and
// the end of it kept; with its end, or at a time limit, the whole group ends.

import { spawn, type ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { errno, type Owner } from './files.ts'
import { whyNotStarted } from './not-started.ts'

export type UserCommand = {
  readonly command: readonly string[]
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Without any further groups; null: as the user of this process. */
  readonly user: Owner | null
}

export type UserProcess = {
  readonly pid: number | null
  /** Resolves when it has ended and what it said has been read, at most a second later. */
  readonly ended: Promise<HowEnded>
  running(): boolean
  /** The last of what it wrote to either stream. */
  lastLines(most: number): readonly string[]
  /** SIGTERM to the whole group, SIGKILL to what is still there after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

export type HowEnded = {
  /** Null: by a signal, or it was not started. */
  readonly code: number | null
  /** For people: `exit code 3`, `ended by SIGKILL`. */
  readonly how: string
}

const keptCharacters = 8_192
const longestLine = 256
/** What it has started may hold the pipes open. */
const drainMs = 1_000

/** Never throws: one that could not be started has ended. */
export const startUserProcess = (command: UserCommand): UserProcess => {
  try {
    return watched(spawned(command), command)
  } catch (error) {
    // Of some errors (EPERM, ENOMEM, E2BIG) Node does not tell the process that it could not make, but throws.
    return neverStarted(error, command)
  }
}

const spawned = ({ command, env, cwd, user }: UserCommand): ChildProcess => {
  const [program = '', ...args] = command
  return spawn(program, args, {
    cwd,
    env: { ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(user === null ? {} : { uid: user.uid, gid: user.gid }),
  })
}

const notStarted = (error: unknown, { command: [program = ''], cwd }: UserCommand): HowEnded => ({
  code: null,
  how: `could not be started: ${whyNotStarted(error, program, cwd)}`,
})

const neverStarted = (error: unknown, command: UserCommand): UserProcess => ({
  pid: null,
  ended: Promise.resolve(notStarted(error, command)),
  running: () => false,
  lastLines: () => [],
  stop: () => Promise.resolve(),
})

const watched = (child: ChildProcess, command: UserCommand): UserProcess => {
  let said = ''
  // Where no descriptor is left (EMFILE) there are none, whatever their type says.
  const streams: readonly (Readable | null | undefined)[] = [child.stdout, child.stderr]
  for (const stream of streams) {
    stream?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-keptCharacters)))
    stream?.on('error', () => {})
  }
  const { pid } = child
  let running = pid !== undefined
  const ended = new Promise<HowEnded>((resolve) => {
    child.once('error', (error) => {
      running = false
      resolve(notStarted(error, command))
    })
    child.once('exit', (code, signal) => {
      running = false
      if (pid !== undefined) signalGroup(pid, 'SIGKILL')
      const end = { code, how: code === null ? `ended by ${signal}` : `exit code ${code}` }
      const late = setTimeout(() => resolve(end), drainMs)
      child.once('close', () => {
        clearTimeout(late)
        resolve(end)
      })
      late.unref()
    })
  })
  return {
    pid: pid ?? null,
    ended,
    running: () => running,
    lastLines: (most) => linesIn(said).slice(-most),
    async stop(graceMs) {
      if (!running || pid === undefined) return
      signalGroup(pid, 'SIGTERM')
      const killer = setTimeout(() => signalGroup(pid, 'SIGKILL'), graceMs)
      await ended
      clearTimeout(killer)
    },
  }
}

const linesIn = (text: string): string[] =>
  text
    .split('\n')
    .map(shownLine)
    .filter((line) => line !== '')

/** What a program says goes to terminals, logs and answers of bounded length. */
export const shownLine = (line: string): string =>
  line
    .replace(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, longestLine)

const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (errno(error) !== 'ESRCH' && errno(error) !== 'EPERM') throw error
  }
}

export type RanInTime = HowEnded & { readonly timedOut: boolean; readonly lines: readonly string[] }

/** From its start to its end, or to the end of its whole group after `withinMs`, or when `over` says so. */
export const runInTime = async (command: UserCommand, withinMs: number, over: AbortSignal): Promise<RanInTime> => {
  const process = startUserProcess(command)
  let timedOut = false
  const stop = (): void => void process.stop(0)
  const timer = setTimeout(() => {
    timedOut = true
    stop()
  }, withinMs)
  over.addEventListener('abort', stop)
  if (over.aborted) stop()
  const end = await process.ended
  over.removeEventListener('abort', stop)
  clearTimeout(timer)
  return { ...end, timedOut, lines: process.lastLines(5) }
}
