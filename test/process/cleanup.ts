// What a test set up is taken down in reverse: the process before the folder it writes to.

import type { TestContext } from 'node:test'

/** What the harness needs of a test or of the `before` of a suite. */
export type Scope = Pick<TestContext, 'after'>

type Step = () => void | Promise<void>

const stacks = new WeakMap<Scope, Step[]>()

export const cleanup = (t: Scope, step: Step): void => {
  const known = stacks.get(t)
  if (known !== undefined) {
    known.push(step)
    return
  }
  const steps = [step]
  stacks.set(t, steps)
  t.after(async () => {
    const failures: unknown[] = []
    for (let last = steps.pop(); last !== undefined; last = steps.pop()) {
      try {
        await last()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'cleaning up after the test failed')
  })
}

/** For a part of a test that is repeated: what it set up is taken down before the next. */
export const inScope = async <T>(run: (scope: Scope) => Promise<T>): Promise<T> => {
  const ends: (() => unknown)[] = []
  try {
    return await run({ after: (end) => void ends.push(end as () => unknown) })
  } finally {
    for (const end of ends) await end()
  }
}
