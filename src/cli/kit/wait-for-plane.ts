import { sleep } from '#platform/timers.ts'
import type { Cli } from './cli.ts'
import { exitCodes } from './exit-codes.ts'
import { Failure } from './failure.ts'

const retryMs = 2000

/** For commands that follow something: a plane that restarts is waited for, one that refuses ends it. */
export const waitForPlane = async <T>(cli: Cli, note: (text: string) => void, ask: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      const waits =
        error instanceof Failure && (error.exit === exitCodes.unavailable || error.exit === exitCodes.tryLater)
      if (!waits) throw error
      if (attempt === 1) note(`${error.message} Waiting for it.`)
      await sleep(cli.timers, error.retryAfterMs ?? retryMs)
    }
  }
}
