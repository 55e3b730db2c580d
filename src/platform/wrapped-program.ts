// A program that runs in place of this one: with our terminal, our environment and our signals. We end with it, and as it did.

import { spawn } from 'node:child_process'
import * as os from 'node:os'

export type WrappedProgram = {
  /** Its exit code; 128 and the number of the signal that ended it; 127: it could not be started. */
  readonly ended: Promise<number>
}

/** Those that a supervisor or a terminal sends. SIGKILL and SIGSTOP reach no process that could pass them on. */
const forwarded = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT'] as const

/** Words and never a shell. From now on our signals are its signals, until it has ended. */
export const startWrapped = (
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  onError: (why: string) => void,
): WrappedProgram => {
  // Before the program is there: a signal between its start and these would end us, and leave it behind.
  const listeners = forwarded.map((signal) => [signal, (): void => void child.kill(signal)] as const)
  for (const [signal, pass] of listeners) process.on(signal, pass)
  const child = spawn(command, [...args], { stdio: 'inherit', env: { ...process.env, ...env } })
  return {
    ended: new Promise((resolve) => {
      const end = (code: number): void => {
        for (const [signal, pass] of listeners) process.removeListener(signal, pass)
        resolve(code)
      }
      child.once('error', (error) => {
        onError(error.message)
        if (child.pid === undefined) end(notStarted)
      })
      child.once('exit', (code, signal) => end(code ?? signalled + os.constants.signals[signal ?? 'SIGKILL']))
    }),
  }
}

const notStarted = 127
const signalled = 128
