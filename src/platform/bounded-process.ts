// A short program that says something and ends: run without a shell in a process group of its own, bounded in time and in what
// it may say. One that cannot be ended (it waits for a broken disk) is reported in time all the same.

import { spawn } from 'node:child_process'
import { errno } from './files.ts'
import { whyNotStarted } from './not-started.ts'

export type BoundedCommand = {
  readonly command: readonly string[]
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>
  readonly withinMs: number
}

export type BoundedRun =
  | { readonly kind: 'ended'; readonly code: number | null; readonly text: string }
  | { readonly kind: 'too-slow'; readonly text: string }
  | { readonly kind: 'not-started'; readonly why: string }

export type BoundedProcess = {
  readonly result: Promise<BoundedRun>
  /** Its processes are gone: after the result where it was too slow. */
  readonly gone: Promise<void>
  kill(): void
}

const longestText = 4096

export const startBounded = ({ command, env, withinMs }: BoundedCommand): BoundedProcess => {
  const [program = '', ...args] = command
  const child = spawn(program, args, { cwd: '/', env: { ...env }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      text = (text + part).slice(0, longestText)
    })
  }
  const kill = (): void => {
    if (child.pid !== undefined) killGroup(child.pid)
  }
  const gone = Promise.withResolvers<void>()
  const result = new Promise<BoundedRun>((resolve) => {
    const timer = setTimeout(() => {
      kill()
      resolve({ kind: 'too-slow', text })
    }, withinMs)
    child.once('error', (error) => {
      clearTimeout(timer)
      resolve({ kind: 'not-started', why: whyNotStarted(error, program, '/') })
      if (child.pid === undefined) gone.resolve()
    })
    child.once('exit', () => {
      // What it has started and not ended would keep its pipes open.
      kill()
      gone.resolve()
    })
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve({ kind: 'ended', code, text })
    })
  })
  return { result, gone: gone.promise, kill }
}

const killGroup = (pid: number): void => {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (errno(error) !== 'ESRCH' && errno(error) !== 'EPERM') throw error
  }
}
