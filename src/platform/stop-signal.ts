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

/** Aborts when standard input ends: whoever started this process and held it open wants it to stop, or is gone. */
export const inputEnded = (): AbortSignal => {
  const controller = new AbortController()
  const end = (): void => controller.abort()
  process.stdin.on('end', end).on('close', end).on('error', end).resume()
  // It is waited for only as long as there is something else to do.
  process.stdin.unref()
  return controller.signal
}
