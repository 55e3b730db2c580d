// SIGUSR2: SIGUSR1 is taken by Node's inspector, and SIGHUP means that a terminal went away.

import { errno } from './files.ts'

export const onNudgeSignal = (run: () => void): void => void process.on('SIGUSR2', run)

/** Whether this process takes nudges: one that does not would be ended by them. */
export const takesNudges = (): boolean => process.listenerCount('SIGUSR2') > 0

export const sendNudge = (pid: number): 'sent' | 'gone' | 'not-allowed' => {
  try {
    process.kill(pid, 'SIGUSR2')
    return 'sent'
  } catch (error) {
    return errno(error) === 'EPERM' ? 'not-allowed' : 'gone'
  }
}
