// Signals to a process: to stop (SIGTERM from a supervisor, Ctrl-C, a terminal that went away), and to act now (a nudge).

import { errno } from './files.ts'

/** Aborts at the first of these signals. A second one ends the process at once, for when stopping hangs. */
export const stopSignal = (): AbortSignal => {
  const controller = new AbortController()
  const stop = (): void => {
    for (const signal of stopSignals) process.removeListener(signal, stop)
    controller.abort()
  }
  for (const signal of stopSignals) process.on(signal, stop)
  return controller.signal
}

const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Aborts when standard input ends: the parent that held it open wants this process to stop, or is gone. */
export const inputEnded = (): AbortSignal => {
  const controller = new AbortController()
  const end = (): void => controller.abort()
  process.stdin.on('end', end).on('close', end).on('error', end).resume()
  // It is waited for only as long as there is something else to do.
  process.stdin.unref()
  return controller.signal
}

/** SIGUSR1 opens Node's debugger where that is not turned off, and SIGHUP means that a terminal went away. */
const nudge = 'SIGUSR2'

export const onNudgeSignal = (run: () => void): void => void process.on(nudge, run)

/** Whether this process takes nudges: one that does not would be ended by them. */
export const takesNudges = (): boolean => process.listenerCount(nudge) > 0

export const sendNudge = (pid: number): 'sent' | 'gone' | 'not-allowed' => {
  try {
    process.kill(pid, nudge)
    return 'sent'
  } catch (error) {
    return errno(error) === 'EPERM' ? 'not-allowed' : 'gone'
  }
}
