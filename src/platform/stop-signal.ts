// Asked to stop: SIGTERM from a supervisor, Ctrl-C, a terminal that went away.

/** Aborts at the first of these signals. A second one ends the process at once, for when stopping hangs. */
export const stopSignal = (): AbortSignal => {
  const controller = new AbortController()
  const stop = (): void => {
    for (const signal of signals) process.removeListener(signal, stop)
    controller.abort()
  }
  for (const signal of signals) process.on(signal, stop)
  return controller.signal
}

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
