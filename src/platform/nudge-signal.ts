/** SIGUSR2: SIGUSR1 is taken by Node's inspector, and SIGHUP means that a terminal went away. */
export const onNudgeSignal = (run: () => void): void => void process.on('SIGUSR2', run)
