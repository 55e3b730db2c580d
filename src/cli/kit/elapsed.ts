import type { Cli } from './cli.ts'

/**
 * While one long call runs, a person at a terminal sees how long it has taken and, where `look` finds out, how far it has come:
 * `applying: 12 s, 1200 of 10000`. What `look` cannot say is left out.
 */
export const withElapsed = async <T>(
  cli: Cli,
  what: string,
  work: () => Promise<T>,
  look: () => Promise<string | null> = () => Promise.resolve(null),
): Promise<T> => {
  if (!cli.err.isTerminal) return work()
  let seconds = 0
  let found: string | null = null
  let looking = false
  const lookOnce = async (): Promise<void> => {
    looking = true
    found = await look().catch(() => null)
    looking = false
  }
  const cancel = cli.timers.every(1000, () => {
    cli.err.write(`\r\u001b[K${what}: ${++seconds} s${found === null ? '' : `, ${found}`}`)
    if (!looking) void lookOnce()
  })
  try {
    return await work()
  } finally {
    cancel()
    if (seconds > 0) cli.err.write('\r\u001b[K')
  }
}
