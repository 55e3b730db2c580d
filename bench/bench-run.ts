// A benchmark from beginning to end: whatever it has started goes with it, however it ends.

import * as os from 'node:os'
import type { Scope } from '../test/process/cleanup.ts'

/** Runs it, takes down what it set up, and says how busy the machine was: others' work is in every figure. */
export const benchRun = async (run: (t: Scope) => Promise<void>): Promise<void> => {
  const steps: (() => unknown)[] = []
  const t: Scope = { after: (step?: unknown) => void steps.push(step as () => unknown) }
  let goingDown: Promise<void> | null = null
  const takeDown = (): Promise<void> =>
    (goingDown ??= (async () => {
      for (const step of steps.toReversed()) await step()
    })())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => void takeDown().finally(() => process.exit(1)))

  const before = loadNow()
  try {
    await run(t)
    console.log(`load average     ${before} before, ${loadNow()} after, on ${os.availableParallelism()} cores`)
  } catch (error) {
    // What fails because everything is being taken away from it has nothing to say.
    if (goingDown === null) throw error
  } finally {
    await takeDown()
  }
}

const loadNow = (): string => (os.loadavg()[0] ?? 0).toFixed(1)
