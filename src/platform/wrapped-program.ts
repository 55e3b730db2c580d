// A program that runs in place of this one: with our terminal, our environment and our signals. We end with it, and as it did.

import { spawn, type ChildProcess } from 'node:child_process'
import * as os from 'node:os'
import { isatty } from 'node:tty'

export type WrappedProgram = {
  /** Its exit code; 128 and the number of the signal that ended it; 127: it could not be started. */
  readonly ended: Promise<number>
}

/**
 * Those that a supervisor or a terminal sends. SIGKILL and SIGSTOP reach no process that could pass them on. Nor does SIGUSR1: it would
 * open Node's debugger, so Node is started with --disable-sigusr1, which keeps it blocked whatever JavaScript listens for.
 */
const forwarded = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGWINCH', 'SIGCONT'] as const

/** A terminal sends these to the program as well, which may take the second one for an order to end at once. */
const sentByTerminal: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT', 'SIGWINCH'])

/** Words and never a shell. From now on our signals are its signals, until it has ended. */
export const startWrapped = (
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  onError: (why: string) => void,
): WrappedProgram => {
  let child: ChildProcess | null = null
  const onTerminal = isatty(0)
  const listeners = forwarded.map((signal) => {
    const pass = (): void => {
      if (!onTerminal || !sentByTerminal.has(signal)) child?.kill(signal)
    }
    // Before the program is there: a signal between its start and this would end us, and leave it behind.
    process.on(signal, pass)
    return [signal, pass] as const
  })
  const letGo = (): void => {
    for (const [signal, pass] of listeners) process.removeListener(signal, pass)
  }
  const started = startProgram(command, args, env)
  if (started instanceof Error) {
    letGo()
    onError(started.message)
    return { ended: Promise.resolve(notStarted) }
  }
  child = started
  return {
    ended: new Promise((resolve) => {
      const end = (code: number): void => {
        letGo()
        resolve(code)
      }
      // More than once: each signal that may not be sent to a program with other rights is an error.
      started.on('error', (error) => {
        onError(error.message)
        if (started.pid === undefined) end(notStarted)
      })
      started.once('exit', (code, signal) => end(code ?? signalled + os.constants.signals[signal ?? 'SIGKILL']))
    }),
  }
}

/** Some of what can be wrong with words and paths is thrown, and the rest comes as an event. */
const startProgram = (
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): ChildProcess | Error => {
  try {
    return spawn(command, [...args], { stdio: 'inherit', env: { ...process.env, ...env } })
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

const notStarted = 127
const signalled = 128
