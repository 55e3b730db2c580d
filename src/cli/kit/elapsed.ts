import type { Cli } from './cli.ts'

/** While one long call runs, a person at a terminal sees how long it has taken: `10000 nodes: 12 s`. */
export const withElapsed = async <T>(cli: Cli, what: string, work: () => Promise<T>): Promise<T> => {
  if (!cli.err.isTerminal) return work()
  let seconds = 0
  const cancel = cli.timers.every(1000, () => cli.err.write(`\r${what}: ${++seconds} s`))
  try {
    return await work()
  } finally {
    cancel()
    if (seconds > 0) cli.err.write('\r\u001b[K')
  }
}
